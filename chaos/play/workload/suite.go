package workload

// Suite returns the workloads for comparing systems: every named demand with the usual setting, and
// then variants of limit, window, number of regions and algorithm. Each workload has a name of its
// own. The same seed gives the same workloads on every machine.
func Suite(seed uint64) []*Workload {
	var suite []*Workload
	for i, s := range Cases() {
		w, err := Make(s.Demand, s.Setting, seed+uint64(i))
		if err != nil {
			panic(err) // the cases are constants, and a test makes all of them
		}
		suite = append(suite, w)
	}
	return suite
}

// Case describes one workload of a comparison.
type Case struct {
	// Demand is one of Names.
	Demand  string
	Setting Setting
}

// Cases returns the cases of Suite.
func Cases() []Case {
	var cases []Case
	for _, name := range Names() {
		s := Usual()
		if name == "under-threshold" {
			s.Regions = 10
		}
		cases = append(cases, Case{name, s})
	}
	for _, v := range variants {
		s := Usual()
		v.change(&s)
		cases = append(cases, Case{v.demand, s})
	}
	return cases
}

// variants are the cases with other settings than the usual one.
var variants = []struct {
	demand string
	change func(*Setting)
}{
	{"even-90", func(s *Setting) { s.Limit = 3 }},
	{"zipf", func(s *Setting) { s.Limit = 10 }},
	{"zipf", func(s *Setting) { s.Limit = 100 }},
	{"zipf", func(s *Setting) { s.Limit = 1_000_000 }},
	{"zipf", func(s *Setting) { s.Regions = 2 }},
	{"zipf", func(s *Setting) { s.Regions = 10 }},
	{"step", func(s *Setting) { s.Window = 10 * Second }},
	{"zipf", func(s *Setting) { s.Window = 60 * Second }},
	{"cell-end", func(s *Setting) { s.Window = 60 * Second }},
	{"step", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"step", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"step", func(s *Setting) { s.Algorithm, s.Burst = "token_bucket", 200 }},
	{"step", func(s *Setting) { s.Algorithm, s.Burst = "leaky_bucket", 200 }},
	{"even-90", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"even-90", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"zipf", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"zipf", func(s *Setting) { s.Algorithm = "sliding_window_log" }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Window = "sliding_window_log", 60*Second }},
	{"anti-phase-4", func(s *Setting) { s.Algorithm = "sliding_window_counter" }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Burst, s.Window = "token_bucket", 200, 60*Second }},
	{"zipf", func(s *Setting) { s.Algorithm, s.Burst, s.Window = "leaky_bucket", 200, 60*Second }},
	{"one-region", func(s *Setting) {
		s.Algorithm, s.Burst, s.Window = "leaky_bucket", 200, 10*Second
	}},
}
