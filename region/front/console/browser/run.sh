#!/usr/bin/env bash
# Looks at the console in a headless Chromium, with a real quotad and a load of a few requests a
# second, and writes pictures of it. Needs node, npm, Go and Chromium. It takes about four minutes.
#
#   IMAGES=docs/images   where the pictures go
set -euo pipefail
cd "$(dirname "$0")/../../../.."
export CONSOLE_TOOLS=$PWD/bin/console IMAGES=${IMAGES:-$PWD/docs/images}
export QUOTAD=$CONSOLE_TOOLS/quotad
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
export CHROMIUM
mkdir -p "$CONSOLE_TOOLS"
npm install --silent --no-save --prefix "$CONSOLE_TOOLS" playwright-core@1.65.1 axe-core@4.10.3
go build -o "$QUOTAD" ./cmd/quotad
node --test region/front/console/test/*.test.js
node --test --test-timeout=300000 region/front/console/browser/*.test.js
