import { createRoot } from 'react-dom/client'
import { store } from './live/store'
import { takeToken } from './live/token'
import { loadAhead } from './ui/actions'
import { App } from './ui/app'
import { refuseStrayDrops } from './ui/dropping'
import { listenToKeys } from './ui/keys'
import { listenToSessions } from './ui/notify'
import { Part } from './ui/part'
import { applyTheme } from './ui/settings'
import './styles/index.css'

applyTheme()
await takeToken()
store.start()
loadAhead()
listenToSessions()
listenToKeys()
refuseStrayDrops()

const root = document.getElementById('root')
if (root !== null) createRoot(root).render(<Part name="page"><App /></Part>)
