import { createRoot } from 'react-dom/client'
import { store } from './live/store'
import { reportAttention } from './live/attention'
import { renewSubscription, takePairing } from './live/devices'
import { takeToken } from './live/token'
import { loadAhead } from './ui/shell/actions'
import { App } from './ui/app'
import { refuseStrayDrops } from './ui/composer/file_drop'
import { listenToKeys } from './ui/shell/keys'
import { listenToNotifications } from './ui/shell/landing'
import { listenToSessions } from './ui/shell/notifications'
import { ErrorBoundary } from './ui/common/error_boundary'
import { applyTheme } from './ui/shell/settings'
import { listenToStarts } from './ui/start/starting'
import './styles/fonts.css'
import './styles/index.css'

applyTheme()
await takeToken()
await takePairing()
store.start()
loadAhead()
listenToSessions()
listenToNotifications()
reportAttention()
renewSubscription()
listenToKeys()
refuseStrayDrops()
listenToStarts()

const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<ErrorBoundary name="page"><App /></ErrorBoundary>)
