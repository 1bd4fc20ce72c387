// Races of agents: the board of one, live while it runs, and the list of all.

import { useEffect, useState } from 'react'
import type { Entrant, RaceRecord } from '../../core/generated/responses'
import { plural } from '../../core/text/format'
import { races } from '../../live/api'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { paths } from '../shell/route'

const LOOK_MS = 1000

export function Races({ id }: { id: string }) {
  const [tick, setTick] = useState(0)
  const { value, failure } = useRefetch('races', tick, races)
  const all = value?.races ?? []
  const race = id === '' ? all[0] : all.find((each) => each.id === id)
  useEffect(() => {
    const timer = setInterval(() => setTick((before) => before + 1), LOOK_MS)
    return () => clearInterval(timer)
  }, [])
  return (
    <main className="screen races" aria-label="Races">
      <h1>Races</h1>
      <p className="lead">Several agents do one task, each in a worktree of its own, and the tests judge them. <code>dragoman race</code> starts one.</p>
      {value === null && <p className="quiet">{failure ? <Plain text={failure} /> : 'Looking…'}</p>}
      {value !== null && all.length === 0 && <div className="empty big"><Icon name="grid" /><p>No race has been run on this machine.</p></div>}
      {value !== null && all.length > 0 && race === undefined && <p className="quiet">There is no such race.</p>}
      {race !== undefined && <Board race={race} />}
      {all.length > 1 && <Others races={all.filter((each) => each !== race)} />}
    </main>
  )
}

function Board({ race }: { race: RaceRecord }) {
  const places = race.verdict?.places.map(({ label }) => label) ?? race.entrants.map(({ label }) => label)
  const order = places.map((label) => race.entrants.find((each) => each.label === label)).filter((each) => each !== undefined)
  return (
    <section className="board" aria-label="Board">
      <h2><Plain text={race.task.trim().split('\n')[0] ?? ''} /></h2>
      <p className="quiet"><code><Plain text={race.check} /></code> in <Plain text={race.repository || race.folder} /></p>
      <p className="sum" role="status"><strong><Plain text={outcome(race)} /></strong></p>
      <div className="figures" tabIndex={0} role="region" aria-label="Entrants">
        <table>
          <thead>
            <tr>
              <th scope="col">Entrant</th>
              <th scope="col">Result</th>
              <th scope="col">Diff</th>
              <th scope="col">Cost</th>
              <th scope="col" className="minor">Calls</th>
              <th scope="col" className="minor">Time</th>
            </tr>
          </thead>
          <tbody>{order.map((entrant) => <Row key={entrant.label} entrant={entrant} race={race} />)}</tbody>
        </table>
      </div>
      {race.merged !== null && <p className="quiet">Merged: <Plain text={race.merged.join(', ')} /></p>}
    </section>
  )
}

function Row({ entrant, race }: { entrant: Entrant; race: RaceRecord }) {
  const place = race.verdict?.places.find(({ label }) => label === entrant.label)
  const won = race.verdict?.winner === entrant.label
  const standing = place === undefined ? (entrant.status !== 'done' ? entrant.status : entrant.outcome === 'completed' ? 'ended' : 'failed') : won ? 'won' : place.passed ? 'passed' : 'failed'
  const words = place?.reason ?? (entrant.detail || entrant.status)
  return (
    <tr className={`entrant ${standing}`}>
      <th scope="row">{entrant.session === null ? <Plain text={entrant.label} /> : <a href={paths.session(entrant.session)}><Plain text={entrant.label} /></a>}</th>
      <td className="reason"><span className="mark" aria-hidden="true">{MARKS[standing] ?? '·'}</span> {won && 'Wins: '}<Plain text={words} /></td>
      <td>{entrant.files > 0 && <><span className="plus">+{entrant.added}</span> <span className="minus">−{entrant.removed}</span></>}</td>
      <td>{Object.entries(entrant.cost).map(([currency, amount]) => <span key={currency}>{amount.toFixed(2)} {currency}</span>)}</td>
      <td className="minor">{entrant.beganAt !== null && entrant.toolCalls}</td>
      <td className="minor">{entrant.beganAt !== null && time(entrant.seconds)}</td>
    </tr>
  )
}

const MARKS: Record<string, string> = { won: '✓', passed: '✓', failed: '✗', running: '▸', judging: '▸' }

function outcome(race: RaceRecord): string {
  if (race.verdict === null) return race.endedAt === null ? `${plural(race.entrants.length, 'entrant')} under way` : race.problem
  const { winner, because } = race.verdict
  return winner === null ? because : `${winner} wins: ${because}`
}

function time(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`
}

function Others({ races }: { races: RaceRecord[] }) {
  return (
    <section aria-label="Other races">
      <h2>Other races</h2>
      <ul className="racelist">
        {races.map((race) => (
          <li key={race.id}>
            <a href={paths.race(race.id)}><Plain text={race.task.trim().split('\n')[0] ?? race.id} /></a>
            <span className="quiet">{new Date(race.createdAt * 1000).toLocaleString()} · <Plain text={outcome(race)} /></span>
          </li>
        ))}
      </ul>
    </section>
  )
}
