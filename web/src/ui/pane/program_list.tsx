// What really ran inside a session's fence, the newest first.

import { count, within } from '../../core/text/format'
import type { ProgramRun } from '../../core/generated/facts'
import { commandLine } from '../../core/text/safe_text'
import type { LiveSession } from '../../live/session'
import { Plain } from '../common/plain_text'

const SHOWN = 100

export function ProgramList({ session }: { session: LiveSession }) {
  const { programs, programsBefore, cwd } = session.state
  const earlier = programsBefore + programs.slice(0, -SHOWN).reduce((sum, each) => sum + (each.count ?? 1), 0)
  if (programs.length === 0 && earlier === 0) return null
  return (
    <section>
      <h3>What really ran</h3>
      <ul className="decisions">{programs.slice(-SHOWN).reverse().map((each) => <Program key={each.id} program={each} cwd={cwd} />)}</ul>
      {earlier > 0 && <p><small>and {count(earlier)} earlier</small></p>}
    </section>
  )
}

function Program({ program, cwd }: { program: ProgramRun; cwd: string }) {
  const { argv, parents = [], count: often = 1, refused } = program
  const where = within(program.cwd ?? '', cwd)
  return (
    <li>
      <span className={`effect ${refused == null ? ending(program).effect : 'deny'}`}><Plain text={refused == null ? ending(program).words : 'refused'} /></span>
      <span>
        <code><Plain text={commandLine(argv) + (program.cut ? ' …' : '')} /></code>{often > 1 && ` ×${often}`}
        <small><Plain text={[refused, parents.length > 0 && `by ${parents.join(' › ')}`, where && `in ${where}`].filter(Boolean).join(' · ')} /></small>
      </span>
    </li>
  )
}

function ending({ exitCode, signal }: ProgramRun): { effect: string; words: string } {
  if (signal != null) return { effect: 'cancelled', words: signal }
  if (exitCode == null) return { effect: '', words: 'started' }
  return exitCode === 0 ? { effect: 'allow', words: 'exit 0' } : { effect: 'cancelled', words: `exit ${exitCode}` }
}
