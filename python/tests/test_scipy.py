"""SciPy's functions of the array API on arrays of Cantus, beside the same functions on NumPy's. SCIPY_ARRAY_API is set in conftest.py.

Not here, because they are not of the array API in SciPy 1.17: `linalg`, `spatial.distance`, `integrate.simpson`, `interpolate.AAA` and
`signal.unit_impulse`, which take arrays of Cantus as NumPy's and return NumPy's. `signal.oaconvolve` writes through views of an array, and
`integrate.tanhsinh` and `nsum` multiply whole numbers by floats, which the standard leaves open and array-api-strict refuses as well; see
`test_what_is_left_out`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import cantus

assert os.environ.get("SCIPY_ARRAY_API") == "1"
pytest.importorskip("scipy", minversion="1.16")

from scipy import differentiate, fft, integrate, interpolate, ndimage, signal, special, stats  # noqa: E402
from scipy.cluster import hierarchy, vq  # noqa: E402
from scipy.optimize import elementwise, rosen  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

generator = np.random.default_rng(0)
X, Y = generator.standard_normal((2, 6, 40))
P, B = np.abs(X) + 0.5, generator.random((6, 40))
LINE = np.linspace(0, 1, 20)

# Of a namespace, and a function that makes arrays of it.
ROWS = {
    "special.softmax": lambda xp, a: special.softmax(a(X), axis=1),
    "special.log_softmax": lambda xp, a: special.log_softmax(a(X), axis=1),
    "special.logsumexp": lambda xp, a: special.logsumexp(a(X), axis=0),
    "special.xlogy": lambda xp, a: special.xlogy(a(P), a(P)),
    "special.rel_entr": lambda xp, a: special.rel_entr(a(P), a(B)),
    "special.chdtrc": lambda xp, a: special.chdtrc(a(P), a(P)),
    "special.gammainc": lambda xp, a: special.gammainc(a(P), a(P)),
    "special.betainc": lambda xp, a: special.betainc(a(P), a(P), a(B)),
    "special.stdtrit": lambda xp, a: special.stdtrit(a(P), a(B)),
    "fft.fft": lambda xp, a: fft.fft(a(X)),
    "fft.irfft": lambda xp, a: fft.irfft(fft.rfft(a(X))),
    "fft.fftn": lambda xp, a: fft.fftn(a(X)),
    "fft.fftshift": lambda xp, a: fft.fftshift(a(X)),
    "fft.dct": lambda xp, a: fft.dct(a(X)),
    "fft.fht": lambda xp, a: fft.fht(a(X), 0.1, 0.5),
    "signal.fftconvolve": lambda xp, a: signal.fftconvolve(a(X), a(Y), mode="same"),
    "signal.convolve": lambda xp, a: signal.convolve(a(X[0]), a(Y[0]), method="direct"),
    "signal.correlate": lambda xp, a: signal.correlate(a(X[0]), a(Y[0])),
    "signal.detrend": lambda xp, a: signal.detrend(a(X)),
    "signal.hilbert": lambda xp, a: signal.hilbert(a(X)),
    "signal.kaiser": lambda xp, a: signal.windows.kaiser(12, 4.0, xp=xp),
    "signal.get_window": lambda xp, a: signal.get_window("hann", 12, xp=xp),
    "signal.lfilter": lambda xp, a: signal.lfilter(a([1.0, 0.5]), a([1.0, -0.3]), a(X)),
    "signal.freqz": lambda xp, a: signal.freqz(a([1.0, 0.5, 0.2]), worN=16)[1],
    "signal.resample": lambda xp, a: signal.resample(a(X), 20, axis=1),
    "signal.savgol_filter": lambda xp, a: signal.savgol_filter(a(X), 5, 2),
    "signal.medfilt": lambda xp, a: signal.medfilt(a(X), 3),
    "vq.whiten": lambda xp, a: vq.whiten(a(X)),
    "vq.vq": lambda xp, a: vq.vq(a(X), a(X[:3]))[0],
    "vq.kmeans2": lambda xp, a: vq.kmeans2(a(X), a(X[:3].copy()), minit="matrix")[0],
    "hierarchy.linkage": lambda xp, a: hierarchy.linkage(a(X)),
    "stats.zscore": lambda xp, a: stats.zscore(a(X), axis=1),
    "stats.skew": lambda xp, a: stats.skew(a(X), axis=1),
    "stats.kurtosis": lambda xp, a: stats.kurtosis(a(X), axis=1),
    "stats.gmean": lambda xp, a: stats.gmean(a(P), axis=1),
    "stats.pmean": lambda xp, a: stats.pmean(a(P), 3, axis=1),
    "stats.entropy": lambda xp, a: stats.entropy(a(P), axis=1),
    "stats.pearsonr": lambda xp, a: stats.pearsonr(a(X), a(Y), axis=1).statistic,
    "stats.chisquare": lambda xp, a: stats.chisquare(a(P), axis=1).statistic,
    "stats.f_oneway": lambda xp, a: stats.f_oneway(a(X), a(Y), axis=1).pvalue,
    "stats.kruskal": lambda xp, a: stats.kruskal(a(X), a(Y), axis=1).pvalue,
    "stats.wilcoxon": lambda xp, a: stats.wilcoxon(a(X), a(Y), axis=1, method="asymptotic").pvalue,
    "stats.rankdata": lambda xp, a: stats.rankdata(a(X), axis=1),
    "stats.quantile": lambda xp, a: stats.quantile(a(X), 0.3, axis=1),
    "stats.iqr": lambda xp, a: stats.iqr(a(X), axis=1),
    "stats.circmean": lambda xp, a: stats.circmean(a(X), axis=1),
    "stats.normaltest": lambda xp, a: stats.normaltest(a(X), axis=1).pvalue,
    "stats.combine_pvalues": lambda xp, a: stats.combine_pvalues(a(B), axis=1).pvalue,
    "stats.lmoment": lambda xp, a: stats.lmoment(a(X), axis=1),
    "ndimage.gaussian_filter": lambda xp, a: ndimage.gaussian_filter(a(X), 1.0),
    "ndimage.rotate": lambda xp, a: ndimage.rotate(a(X), 30),
    "integrate.trapezoid": lambda xp, a: integrate.trapezoid(a(X), dx=0.1, axis=1),
    "integrate.cubature": lambda xp, a: integrate.cubature(lambda t: xp.sum(t * t, axis=-1), a([0.0, 0.0]), a([1.0, 1.0])).estimate,
    "optimize.find_root": lambda xp, a: elementwise.find_root(lambda t: t**3 - t - 2.0, (a(1.0), a(2.0))).x,
    "optimize.find_minimum": lambda xp, a: elementwise.find_minimum(lambda t: (t - 0.5) ** 2, (a(-1.0), a(0.0), a(2.0))).x,
    "optimize.rosen": lambda xp, a: rosen(a(X[0])),
    "differentiate.derivative": lambda xp, a: differentiate.derivative(xp.exp, a(X[0])).df,
    "differentiate.jacobian": lambda xp, a: differentiate.jacobian(lambda t: t * t, a(X[0, :3])).df,
    "interpolate.BSpline": lambda xp, a: interpolate.make_interp_spline(a(LINE), a(np.exp(LINE)))(a(B[0])),
    "spatial.Rotation": lambda xp, a: Rotation.from_rotvec(a(X[:, :3])).apply(a(Y[:, :3])),
    **{
        f"special.{name}": lambda xp, a, name=name: getattr(special, name)(a(B if name in ("logit", "ndtri") else X))
        for name in ("gammaln", "log_ndtr", "ndtr", "ndtri", "erf", "erfc", "i0", "i0e", "i1", "i1e", "logit", "expit", "entr")
    },
}


@pytest.mark.parametrize("name", ROWS)
def test_scipys_functions(name):
    def ours(values):
        return cantus.asarray(np.asarray(values, "f8"))

    with cantus.device("cpu"):
        found = ROWS[name](cantus, ours)
        assert isinstance(found, cantus.Array), type(found)
        expected = ROWS[name](np, lambda values: np.asarray(values, "f8"))
        np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6, atol=1e-8)


def test_what_is_left_out():
    """Fails when SciPy or Cantus takes them: then they belong into the table."""
    with cantus.device("cpu"):
        x = cantus.asarray(X)
        with pytest.raises(ValueError, match="read-only"):
            signal.sosfilt(cantus.asarray(signal.butter(4, 0.2, output="sos")), x)
        found = integrate.tanhsinh(lambda t: cantus.exp(-t), cantus.asarray(np.zeros(3)), cantus.asarray(np.ones(3)))
        np.testing.assert_allclose(np.asarray(found.integral), np.full(3, 1 - np.exp(-1)), rtol=1e-8)
        found = signal.oaconvolve(x, cantus.asarray(Y[:, :5]))
        assert not np.allclose(np.asarray(found), signal.oaconvolve(X, Y[:, :5]))
