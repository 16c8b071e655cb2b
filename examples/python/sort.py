"""Sorting by keys, and what is most frequent: `python sort.py [VALUES]`."""

import sys

import cantus
import numpy as np


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    random = np.random.default_rng(4)
    price = random.gamma(2, 10, count).astype("f4")
    shop = random.zipf(1.5, count).clip(max=50).astype("i4")
    prices, shops = cantus.array(price), cantus.array(shop)
    order = cantus.argsort(prices)
    sales = cantus.bincount(shops, minlength=51)
    busiest = cantus.argsort(sales)[::-1][:3]
    print(f"on {prices.device}: cheapest {float(cantus.take(prices, order[:1])[0]):.3f}; busiest shops {np.asarray(busiest).tolist()}")
    assert np.array_equal(np.asarray(cantus.take(prices, order)), np.sort(price))
    assert np.array_equal(np.asarray(sales), np.bincount(shop, minlength=51))


if __name__ == "__main__":
    main()
