"""The parts of a build, as CycloneDX 1.5 on stdout: `xtask/release/sbom.py MANIFEST TARGET [FEATURES]`, from cargo's own resolution for that target.

The crates that are linked, with their licences, the registry's checksums and who needs whom; what only builds or tests them is left out. The serial number
is made from the content: the same build has the same list, byte for byte.
"""

import json
import os
import re
import subprocess
import sys
import uuid
from datetime import datetime, timezone


def purl(package: dict) -> str:
    return f"pkg:cargo/{package['name']}@{package['version'].replace('+', '%2B')}"


def main() -> None:
    manifest, target, *features = sys.argv[1:]
    features = ["--features", *features] if features else []
    own = ["--manifest-path", manifest, "--locked"]

    def told(*command: str) -> str:
        return subprocess.run(["cargo", *command], check=True, stdout=subprocess.PIPE, text=True).stdout

    # `tree` knows the features of this package alone, and `metadata` licences and edges.
    lines = told("tree", *own, *features, "--target", target, "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}").splitlines()
    linked = {tuple(line.split()[:2]) for line in lines if line}
    found = json.loads(told("metadata", *own, *features, "--filter-platform", target, "--format-version", "1"))
    packages = {package["id"]: package for package in found["packages"] if (package["name"], f"v{package['version']}") in linked}
    root = next(identity for identity, package in packages.items() if os.path.realpath(package["manifest_path"]) == os.path.realpath(manifest))
    lock = open(os.path.join(found["workspace_root"], "Cargo.lock"), encoding="utf-8").read()
    sums = {match.group(1, 2): match[3] for match in re.finditer(r'name = "(.*)"\nversion = "(.*)"\nsource = .*\nchecksum = "(.*)"', lock)}
    needs = {node["id"]: {need["pkg"] for need in node["deps"]} & packages.keys() for node in found["resolve"]["nodes"]}

    def component(package: dict, kind: str) -> dict:
        row = {"type": kind, "bom-ref": purl(package), "name": package["name"], "version": package["version"], "purl": purl(package)}
        if package["license"]:
            row["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := sums.get((package["name"], package["version"])):
            row["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return row

    ordered = sorted(packages, key=lambda identity: purl(packages[identity]))
    time = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), timezone.utc)
    list_of = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"timestamp": time.isoformat(), "component": component(packages[root], "application"), "properties": [{"name": "cargo:target", "value": target}]},
        "components": [component(packages[identity], "library") for identity in ordered if identity != root],
        "dependencies": [{"ref": purl(packages[identity]), "dependsOn": sorted({purl(packages[need]) for need in needs[identity]})} for identity in ordered],
    }
    list_of["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(list_of, sort_keys=True))}"
    json.dump(list_of, sys.stdout, indent=1)
    print()


main()
