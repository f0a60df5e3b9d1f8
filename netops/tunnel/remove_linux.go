package tunnel

import "errors"

// Remove closes the device and deletes its link.
func (d *Device) Remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.links.Close()
	return errors.Join(d.engine.close(), d.clear(d.cfg.Name, "none"))
}
