// What would really run or be written, each thing once. What does not fit scrolls, and says so.

import { useLayoutEffect, useRef, useState, type CSSProperties, type ReactNode, type RefObject } from 'react'
import { within } from '../../core/text/format'
import { titleBeyond } from '../../core/permissions/request_titles'
import type { PendingPermission } from '../../core/session/state'
import { commandLine } from '../../core/text/safe_text'
import type { LiveSession } from '../../live/session'
import { copy } from '../common/clipboard'
import { Icon } from '../common/icons'
import { TextEnds } from '../common/long_text'
import { Plain } from '../common/plain_text'
import { AskedDiff } from '../thread/diff_view'
import { ToolContentView } from '../thread/tool_content'

interface Props { session: LiveSession; pending: PendingPermission; cwd: string }

export function PermissionSubject({ session, pending, cwd }: Props) {
  const command = pending.argv === null ? null : commandLine(pending.argv)
  const drawn = new Set(pending.content.map((item) => (item.type === 'diff' ? item.path : '')))
  const paths = pending.paths.filter((path) => !drawn.has(path))
  const shown = paths.map((path) => within(path, cwd).replaceAll('\n', '␊'))
  return (
    <Scrolling>
      {command !== null && (
        <div className="copied">
          <TextEnds className="command" label="The command" text={command} />
          <button type="button" className="ghost" title="Copy the command" aria-label="Copy the command" onClick={() => copy(command, 'Command')}><Icon name="copy" /></button>
        </div>
      )}
      {pending.cwd !== null && pending.cwd !== cwd && <p className="folder"><Icon name="folder" /> in <code><Plain text={pending.cwd} /></code></p>}
      {pending.env.length > 0 && <TextEnds className="paths" label="The variables" text={pending.env.map((name) => name.replaceAll('\n', '␊')).join('\n')} line={(name) => <>sets <code><Plain text={name} /></code></>} />}
      {paths.length > 0 && (
        <div className="copied">
          <TextEnds className="paths" label="The files" text={shown.join('\n')} line={(path) => <><Icon name="file" /> <code><Plain text={path} /></code></>} />
          <button type="button" className="ghost" title="Copy the path" aria-label="Copy the path" onClick={() => copy(paths.join('\n'), 'Path')}><Icon name="copy" /></button>
        </div>
      )}
      <Wording pending={pending} title={titleOf(pending, cwd)} />
      {pending.content.map((item, at) => item.type === 'diff'
        ? <AskedDiff key={at} diff={item} cwd={cwd} />
        : <ToolContentView key={at} session={session} item={item} cwd={cwd} />)}
    </Scrolling>
  )
}

/** The title of a request, if it says more than what is shown. */
export function titleOf({ title, argv, paths, env, cwd: folder }: PendingPermission, cwd: string): string {
  const commands = argv === null ? [] : [commandLine(argv), argv.join(' ')]
  const places = paths.flatMap((path) => [path, within(path, cwd), path.slice(path.lastIndexOf('/') + 1)])
  return titleBeyond(title, [...commands, ...places, folder ?? cwd, `with ${env.join(', ')} set`])
}

/** The agent's words for what it claims; ours only where they add something. */
function Wording({ pending, title }: { pending: PendingPermission; title: string }) {
  const claimed = pending.claimed || pending.toolCallId !== null
  if (!title && !pending.explanation) return null
  return (
    <div className="wording">
      {claimed && <small className="quiet">In the agent’s words</small>}
      {title && <TextEnds className="title" label="The title" text={title.replaceAll('\n', '␊')} />}
      {pending.explanation && <TextEnds className="quiet" label="The explanation" text={pending.explanation} />}
    </div>
  )
}

const LEAST = 110
/** The height of the button that leads onward. */
const ONWARD = 28

/** A box with the room that the window has left for it, so that the answers stay in view. */
function Scrolling({ children }: { children: ReactNode }) {
  const box = useRef<HTMLDivElement>(null)
  const { height, rest } = useFit(box)
  const onward = () => box.current?.scrollBy({ top: box.current.clientHeight * 0.8 })
  const scrolls = rest === null ? {} : { tabIndex: 0, role: 'group', 'aria-label': 'What is asked' }
  return (
    <div className="subject" style={{ '--least': `${Math.min(LEAST, height + ONWARD)}px` } as CSSProperties}>
      <div className="within" ref={box} {...scrolls}>
        <div>{children}</div>
      </div>
      {rest !== null && rest > 1 && <button type="button" className="below" onClick={onward}><Icon name="down" /> More below: read to the end</button>}
    </div>
  )
}

/** How high all of it is, and how much of that is left below; null if everything fits. */
function useFit(box: RefObject<HTMLElement | null>): { height: number; rest: number | null } {
  const [fit, setFit] = useState<{ height: number; rest: number | null }>({ height: 0, rest: null })
  useLayoutEffect(() => {
    const here = box.current
    const all = here?.firstElementChild
    if (here === null || !all) return
    const look = () => {
      const hidden = here.scrollHeight - here.clientHeight
      setFit({ height: here.scrollHeight, rest: hidden > 1 ? hidden - here.scrollTop : null })
    }
    look()
    const observer = new ResizeObserver(look)
    for (const part of [here, all]) observer.observe(part)
    here.addEventListener('scroll', look, { passive: true })
    return () => {
      observer.disconnect()
      here.removeEventListener('scroll', look)
    }
  }, [box])
  return fit
}
