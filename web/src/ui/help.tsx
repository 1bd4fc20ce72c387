// What the keyboard can do, and two choices for this browser.

import { useSignal } from '../live/signal'
import { toggleNotify } from './actions'
import { Modal } from './dialog'
import { KEYS } from './keys'
import { changeSettings, settings, settingsChanged } from './settings'

export function Help() {
  useSignal(settingsChanged)
  return (
    <Modal title="Keyboard shortcuts" className="help">
      <dl className="keys">
        {KEYS.map(([keys, what]) => (
          <div key={keys}><dt>{keys.split(' ').map((key) => (key === 'to' ? ' to ' : <kbd key={key}>{key}</kbd>))}</dt><dd>{what}</dd></div>
        ))}
      </dl>
      <div className="stack">
        <label className="check"><input type="checkbox" checked={settings().notify} onChange={() => void toggleNotify()} /> Desktop notifications when an agent needs you or has finished</label>
        <label className="check"><input type="checkbox" checked={settings().letters} onChange={(e) => changeSettings({ letters: e.target.checked })} /> Single letters are shortcuts</label>
      </div>
    </Modal>
  )
}
