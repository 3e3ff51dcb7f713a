// Package gauge renders the state of the quota as text: how full each window is, who
// waits for it, and the last decisions. It only renders what quotaview returns.
package gauge
