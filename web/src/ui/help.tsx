import { useSignal } from '../live/signal'
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
      <label className="check"><input type="checkbox" checked={settings().letters} onChange={(e) => changeSettings({ letters: e.target.checked })} /> Single letters are shortcuts</label>
    </Modal>
  )
}
