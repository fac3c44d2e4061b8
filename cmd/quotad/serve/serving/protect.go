package serving

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/front/operators"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/trade/peer"
)

// protection is how a node is protected from its callers, and what is written down of their acts.
type protection struct {
	api, admin *peer.TLS      // nil: plain text
	roles      *roles.Book    // nil: there are none
	proxies    *authz.Mapping // nil: there is none
	// guards by port; nil: everybody may do everything that the port serves.
	apiGuard, adminGuard *roles.Guard
	audit                *audit.Log
}

// loadProtection reads certificates and roles, and logs when their files are replaced.
func loadProtection(c *nodeconfig.Config, log *slog.Logger) (*protection, error) {
	p := &protection{}
	var err error
	if p.api, err = loadServerTLS("api_tls", c.APITLS, log); err != nil {
		return nil, err
	}
	if p.admin, err = loadServerTLS("admin_tls", c.AdminTLS, log); err != nil {
		return nil, err
	}
	if c.Roles != "" {
		p.roles, err = roles.OpenBook(c.Roles, func(err error) { p.tellRoles(c.Roles, err, log) })
		if err != nil {
			return nil, exit.Invalid(c.Roles, err)
		}
	}
	if c.Authz != "" {
		if p.proxies, err = authz.Load(c.Authz); err != nil {
			return nil, exit.Invalid(c.Authz, err)
		}
	}
	if p.roles != nil || c.APITLS.CA != "" {
		p.apiGuard = roles.NewGuard("api", p.roles, log)
	}
	if p.roles != nil || c.AdminTLS.CA != "" {
		p.adminGuard = roles.NewGuard("admin", p.roles, log)
	}
	return p, nil
}

// loadServerTLS reads the certificate of a port, and returns nil if none is configured.
func loadServerTLS(setting string, files peer.Files, log *slog.Logger) (*peer.TLS, error) {
	if files == (peer.Files{}) {
		return nil, nil
	}
	loaded, err := peer.LoadServer(files, func(err error) {
		if err != nil {
			log.Error("the new certificates of a port are not in force; the last good ones stay",
				"setting", setting, "err", err)
			return
		}
		log.Info("other certificates of a port are in force", "setting", setting)
	})
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("%s: %w", setting, err))
	}
	return loaded, nil
}

// tellRoles logs and writes down that the roles file changed.
func (p *protection) tellRoles(path string, err error, log *slog.Logger) {
	e := audit.Event{Act: audit.Roles, Who: byFile, From: path, Outcome: audit.Done}
	if err != nil {
		e.Outcome, e.Why = audit.Failed, err.Error()
		log.Error("the roles file is not in force; the last good one stays", "err", err)
	} else {
		e.Detail = fmt.Sprintf("%d callers", p.roles.Callers().Count())
		log.Info("another roles file is in force", "callers", p.roles.Callers().Count())
	}
	p.audit.Write(e)
}

// openAudit opens the audit log.
func (p *protection) openAudit(c *nodeconfig.Config, stderr io.Writer, log *slog.Logger) error {
	node := c.Region + "/" + c.Node
	if c.Audit == nodeconfig.AuditStderr {
		p.audit = audit.New(stderr, node, log)
		return nil
	}
	var err error
	if p.audit, err = audit.Open(c.AuditFile(), node, log); err != nil {
		return exit.Usage(fmt.Errorf("audit: %w", err))
	}
	return nil
}

// Names in the audit log of those who are no callers.
const (
	byFile    = "file"
	byStarter = "who started the node"
	byOthers  = "adopted"
)

// began writes down with what the node was started that can exceed or cut limits, and how far the time
// of its store went back by that.
func (p *protection) began(c *nodeconfig.Config, d *policy.Document, taken region.TakenBack) {
	p.audit.Write(audit.Event{Act: audit.Document, Who: byFile, From: c.Policy,
		Detail: "started with epoch " + d.Epoch().String(), Outcome: audit.Done})
	if c.Bootstrap != 0 {
		p.audit.Write(audit.Event{Act: audit.Bootstrap, Who: byStarter, From: "bootstrap",
			Region: c.Region, Outcome: audit.Done})
	}
	if taken != (region.TakenBack{}) {
		p.audit.Write(audit.Event{Act: audit.Forget, Who: byStarter, From: "forget_store_time",
			Region: c.Region, Detail: taken.Cost(), Outcome: audit.Done})
	}
}

// adopted writes down that a document is open here which another node has.
func (p *protection) adopted(before, d *policy.Document, from string) {
	e := audit.OfDocument(before, d)
	e.Who, e.From, e.Outcome = byOthers, from, audit.Done
	p.audit.Write(e)
}

// options returns the options of a node's server.
func (p *protection) options(c *nodeconfig.Config) api.Options {
	return api.Options{Callers: callers.Options{Port: p.port(p.api, p.apiGuard, c), Wait: c.Wait,
		Headers: c.Headers.HTTP, EnvoyHeaders: c.Headers.Envoy, MaxRate: c.Headers.MaxRate, Proxies: p.proxies},
		Operators: operators.Options{Port: p.port(p.admin, p.adminGuard, c), Roles: p.roles}}
}

// port returns how a port is protected.
func (p *protection) port(trust *peer.TLS, guard *roles.Guard, c *nodeconfig.Config) wire.Port {
	port := wire.Port{Guard: guard, Audit: p.audit, Hosts: c.Hosts}
	if trust != nil {
		port.TLS = trust.ServerConfig
	}
	return port
}

// register adds the metrics of the protection to the node's.
func (p *protection) register(r *prometheus.Registry) {
	r.MustRegister(p.audit.Collectors()...)
	if p.roles != nil {
		r.MustRegister(p.roles.Collectors()...)
	}
	for _, g := range []*roles.Guard{p.apiGuard, p.adminGuard} {
		if g != nil {
			r.MustRegister(g)
		}
	}
	for port, t := range map[string]*peer.TLS{"api": p.api, "admin": p.admin} {
		if t != nil {
			r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name:        "quotad_certificate_end_timestamp_seconds",
				Help:        "When the certificate of a port ends, in seconds since 1970; absent without TLS.",
				ConstLabels: prometheus.Labels{"port": port}},
				func() float64 { return float64(t.Expires().Unix()) }))
		}
	}
}
