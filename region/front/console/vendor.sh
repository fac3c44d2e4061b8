#!/usr/bin/env bash
# Fetches the chart library of the console from npm and writes it to static/. Who builds or runs
# quotad needs none of this: the files are checked in, and TestVendored holds them against
# vendor.sha256, which this writes too.
set -euo pipefail
version=1.6.32
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
(cd "$dir" && npm pack --silent "uplot@$version" >/dev/null && tar xzf "uplot-$version.tgz")
# The minified file defines a variable. One line makes it a module.
{ cat "$dir/package/dist/uPlot.iife.min.js"; echo 'export default uPlot;'; } > static/uplot.js
cp "$dir/package/dist/uPlot.min.css" static/uplot.css
cp "$dir/package/LICENSE" static/uplot-license.txt
sha256sum static/uplot.js static/uplot.css static/uplot-license.txt > vendor.sha256
