#!/usr/bin/env bash
# Makes what keeps others out of three regions: the key of their gossip, and certificates for calls between them. What is
# there already stays as it is.
#
#   ./keys.sh [DIR]          into DIR; default: this folder
#   QUOTAD=/path/to/quotad   the binary; default: quotad
#
# In DIR are then gossip.key, the same for all nodes, and certs, with a folder for each region. Move certs/ca.key to a safe
# place where no node runs: with it anybody can be a node of any region.
set -euo pipefail
umask 077
QUOTAD=${QUOTAD:-quotad}
cd "${1:-$(dirname "${BASH_SOURCE[0]}")}"

[[ -s gossip.key ]] || "$QUOTAD" keys gossip --out gossip.key
[[ -e certs/ca.pem ]] || "$QUOTAD" keys ca certs
for node in us-east/n1 eu-west/n1 ap-south/n1; do
  [[ -e certs/$node.pem ]] || "$QUOTAD" keys cert certs --region "${node%/*}" --node "${node#*/}"
done
