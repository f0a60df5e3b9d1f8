package tunnel

import "errors"

// Remove ends the tunnel and deletes its link, and closes the device.
func (d *Device) Remove() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer d.links.Close()
	return errors.Join(d.engine.close(), d.clear(d.cfg.Name, "none"))
}
