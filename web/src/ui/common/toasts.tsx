// Toasts, and the live regions for screen readers. An open dialog makes the rest of the page inert, so
// it contains them too.

import { useSignal } from '../../live/signal'
import { Icon } from './icons'
import { Plain } from './plain_text'
import { shell } from '../shell/shell'

export function Toasts() {
  useSignal(shell.signal)
  const { toast } = shell
  return (
    <>
      {toast && (
        <div className={`toast ${toast.bad ? 'bad' : ''}`} role={toast.bad ? 'alert' : 'status'}>
          <span><Plain text={toast.text} lines /></span>
          {toast.bad && <button type="button" className="ghost" aria-label="Dismiss" onClick={() => shell.hush()}><Icon name="cross" /></button>}
        </div>
      )}
      <div className="hidden" aria-live="polite">{shell.polite}</div>
      <div className="hidden" aria-live="assertive">{shell.urgent}</div>
    </>
  )
}
