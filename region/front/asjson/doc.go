// Package asjson writes the messages that operators are answered with as JSON, and reads them: the
// server with Marshal, quotad's commands with Unmarshal. It reads the members off the message, so
// that an answer is described once, in proto/quotad/v1.
//
// A member has the name of its field. A duration is a number of milliseconds, and its member's name
// ends in _ms. A time is text as RFC 3339 has it, a number of 64 bits a number, and a value of an
// enum its name in small letters without the enum's.
//
// A field that the message calls optional is left out if it is absent, and so is one that is a
// message. Of the others an empty one is there as well, a list as []. See leftOut for those that
// are not.
package asjson
