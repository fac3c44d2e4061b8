// Package console is the web page of a node: one page for operators, on the admin listener of every
// node, in the binary.
//
// The page shows all regions through the node that serves it. It reads GET /v1/watch and GET
// /v1/explain/{limit}, and where the node makes cuts it posts to /v1/cut. It asks nothing of any
// other host, and its Content-Security-Policy forbids that. The files need no role: they tell
// nothing of the node. What the page reads does. It asks its user for a token then, which stays in
// the browser's tab.
//
// The page is plain HTML, CSS and ES modules, as browsers take them: nothing is built. Each module
// in static has one subject, and app.js is where it starts. The modules without a document, such as
// rates.js, sse.js and trades.js, are tested by node --test. The charts are uPlot's (vendor.sh).
package console
