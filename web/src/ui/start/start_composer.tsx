// Where a session begins: its first prompt, and which agent gets it, where, in which mode and with which
// model. Sending makes the session; the agent starts behind it.

import { useEffect, useRef, type KeyboardEvent } from 'react'
import { offersOf, type Offer } from '../../core/session/agent_options'
import { sessions, type AgentInfo } from '../../live/api'
import { useSignal } from '../../live/signal'
import { starts } from '../../live/starts'
import { store } from '../../live/store'
import { AgentMark } from '../common/agent_mark'
import { Icon } from '../common/icons'
import { Picker } from '../common/picker'
import { useRefetch } from '../common/refetch'
import { AttachmentList, useAttachments } from '../composer/attachments'
import { fileDrop } from '../composer/file_drop'
import { AttachButton, THUMBS, pasted, promptOf, useDraft, useGrowing } from '../composer/prompt_field'
import { go, paths } from '../shell/route'
import { shell } from '../shell/shell'
import { AgentNotice } from './agent_notice'
import { FolderPicker } from './folder_picker'
import { BEGINNING, changeWish, chosenWish, useWish } from './wish'

export function StartComposer() {
  useSignal(store.list)
  useSignal(shell.signal)
  const [text, setText] = useDraft(BEGINNING)
  const attachments = useAttachments(BEGINNING)
  const field = useRef<HTMLTextAreaElement>(null)
  const wish = useWish()
  const agent = store.agents.find(({ name }) => name === wish.agent)
  const offers = useOffers(wish.agent)
  useGrowing(field, text)
  useEffect(() => {
    if (shell.writing !== BEGINNING) return
    field.current?.focus()
    shell.set({ writing: null })
  })
  const ready = (text.trim() !== '' || attachments.items.length > 0) && !attachments.busy && agent?.state !== 'missing' && wish.agent !== ''
  const send = () => {
    if (!ready) return
    const chosen = Object.entries(wish.options).filter(([key, value]) => value !== '' && offers.some((offer) => keyOf(offer) === key))
    const mode = chosen.find(([key]) => key === MODE)?.[1]
    const config = Object.fromEntries(chosen.filter(([key]) => key !== MODE))
    const start = starts.begin({ agent: wish.agent, ...(wish.folder && { cwd: wish.folder }), ...(mode && { mode }), ...(Object.keys(config).length > 0 && { config }) }, promptOf(text, attachments))
    setText('')
    attachments.clear()
    go(paths.start(start.key))
  }
  const onKey = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing || event.key !== 'Enter' || event.shiftKey) return
    if (THUMBS.matches && !event.ctrlKey && !event.metaKey) return
    event.preventDefault()
    send()
  }
  return (
    <form className="composer beginning" aria-label="New session" onSubmit={(event) => { event.preventDefault(); send() }} {...fileDrop(BEGINNING)}>
      <AgentNotice agent={agent} />
      <div className="box">
        <AttachmentList attachments={attachments} />
        <textarea
          ref={field} id="composer" rows={2} value={text} aria-label="First prompt" placeholder="What should the agent do?"
          onChange={(event) => setText(event.target.value)} onKeyDown={onKey} onPaste={(event) => pasted(event, attachments)}
        />
        <div className="tools">
          <AttachButton attachments={attachments} />
          <AgentPicker value={wish.agent} />
          <FolderPicker value={wish.folder} onChange={(folder) => changeWish({ folder })} />
          {offers.map((offer) => <OfferPicker key={keyOf(offer)} offer={offer} value={wish.options[keyOf(offer)] ?? ''} />)}
          <button type="button" className="ghost" title="All options: limits, fence, system prompt, host" aria-label="All options" onClick={allOptions}><Icon name="dots" /></button>
          <span className="space" />
          <button type="submit" className="primary" disabled={!ready} aria-label="Start session" title="Start (Enter)"><Icon name="send" /> <span className="word">Start</span></button>
        </div>
      </div>
    </form>
  )
}

function allOptions(): void {
  const { agent, folder } = chosenWish()
  shell.open({ name: 'new', prompted: true, ...(agent && { agent }), ...(folder && { cwd: folder }) })
}

const MODE = 'mode of the agent'

function keyOf({ id }: Offer): string {
  return id ?? MODE
}

/** What the agent offered in its newest session: it says so only once it runs. */
function useOffers(agent: string): Offer[] {
  const newest = [...store.summaries.values()].filter((session) => session.agent === agent).sort((a, b) => b.updatedAt.localeCompare(a.updatedAt))[0]
  const about = newest === undefined ? '' : `${agent} ${newest.id}`
  const told = useRefetch(about, 0, () => (newest === undefined ? Promise.resolve(null) : sessions.state(newest.id, 0))).value
  return told === null ? [] : offersOf(told as Parameters<typeof offersOf>[0])
}

/** Without a choice of one's own the agent's default counts. */
function OfferPicker({ offer, value }: { offer: Offer; value: string }) {
  const options = [{ value: '', name: `Default ${offer.label.toLowerCase()}` }, ...offer.choices]
  return <Picker label={offer.label} value={options.some((each) => each.value === value) ? value : ''} options={options} onChange={(next) => changeWish({ option: [keyOf(offer), next] })} />
}

const STATES: Record<AgentInfo['state'], string> = { installed: '', 'built in': 'Built in; needs no key', remote: 'Remote', missing: 'Not installed' }

function AgentPicker({ value }: { value: string }) {
  const order = (agent: AgentInfo) => (agent.isDefault ? 0 : agent.state === 'missing' ? 2 : 1)
  const options = [...store.agents].sort((a, b) => order(a) - order(b)).map((agent) => ({
    value: agent.name,
    name: agent.title || agent.name,
    note: [agent.isDefault ? 'Default' : '', STATES[agent.state], agent.signedIn === false ? 'Not signed in' : ''].filter(Boolean).join(' · '),
  }))
  return <Picker label="Agent" value={value} options={options} onChange={(agent) => changeWish({ agent })} mark={(name) => <AgentMark name={name} />} />
}
