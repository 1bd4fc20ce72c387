// What the keyboard can do, and two choices for this browser.

import { useSignal } from '../../live/signal'
import { toggleNotify } from './actions'
import { Modal } from '../common/modal'
import { SHORTCUTS } from './keys'
import { changeSettings, settings, settingsChanged } from './settings'

export function Help() {
  useSignal(settingsChanged)
  return (
    <Modal title="Keyboard shortcuts" className="help">
      <dl className="keys">
        {SHORTCUTS.map(({ keys, does }) => (
          <div key={keys}><dt>{keys.split(' ').map((key, at) => (key === 'to' ? ' to ' : <kbd key={at}>{key}</kbd>))}</dt><dd>{does}</dd></div>
        ))}
      </dl>
      <div className="stack">
        <label className="check"><input type="checkbox" checked={settings().notify} onChange={() => void toggleNotify()} /> Desktop notifications when an agent needs you or has finished</label>
        <label className="check"><input type="checkbox" checked={settings().letters} onChange={(e) => changeSettings({ letters: e.target.checked })} /> Single-letter shortcuts</label>
        <label className="check"><input type="checkbox" checked={settings().enter === 'steer'} onChange={(e) => changeSettings({ enter: e.target.checked ? 'steer' : 'queue' })} /> Enter steers the running turn</label>
      </div>
    </Modal>
  )
}
