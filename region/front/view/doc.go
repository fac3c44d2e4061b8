// Package view puts together what nodes tell of themselves, for operators: all regions at one
// glance (merge.go), and how one bucket stands in every region, with a sentence that says why the
// last request on it was decided as it was (explain.go, sentence.go).
//
// It is pure: what nodes told comes in, and what is shown goes out.
package view
