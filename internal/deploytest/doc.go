// Package deploytest holds the files for deployment to the code: its tests load
// them as the tools would.
package deploytest
