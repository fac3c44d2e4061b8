package region

import (
	"context"

	"github.com/quotad/quotad/region/memory/store"
)

// maxVersions bounds how many different versions of a Redis a node logs in its life.
const maxVersions = 64

// readVersions logs which programs the region's Redis servers say they run, each version once in the
// life of the node. It warns of one that has known flaws, or may have.
func (n *Node) readVersions(ctx context.Context) {
	all, err := n.config.Store.Versions(ctx)
	if err != nil {
		n.log.Debug("the store's version is not known", "err", err)
	}
	for _, v := range all {
		if n.memory.versions[v.String()] || len(n.memory.versions) == maxVersions {
			continue
		}
		if n.memory.versions == nil {
			n.memory.versions = map[string]bool{}
		}
		n.memory.versions[v.String()] = true
		if !v.Flawed() {
			n.log.Info("the store's version", "server", v.Server, "version", v.String())
			continue
		}
		n.log.Warn("the store's Redis is not known to be without grave flaws: upgrade it, unless its package mended them",
			"server", v.Server, "version", v.String(), "mended", store.Mended())
	}
}
