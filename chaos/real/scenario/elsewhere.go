package scenario

// Questions returns the requests of the loads, in their order. A stage can use them to check,
// before the load begins, by which limits the deployment decides them.
func (s *Scenario) Questions() []Question {
	all := make([]Question, len(s.Load))
	for i, l := range s.Load {
		all[i] = s.question(l)
	}
	return all
}
