// What sessions have used: a bar for each day, and tables with the same figures by day and by what one chooses.

import { barsOf, costOf, gapsOf, measured, timeOf, tokensOf } from '../../core/usage'
import type { Spending, UsageRow } from '../../core/generated/responses'
import { plural } from '../../core/text/format'
import { usage, type UsageList } from '../../live/api'
import { useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { Icon } from '../common/icons'
import { Plain } from '../common/plain_text'
import { useRefetch } from '../common/refetch'
import { go, paths, USAGE_DAYS, USAGE_GROUPS, type UsageGroup } from '../shell/route'

export function Usage({ by, days }: { by: UsageGroup; days: number }) {
  useSignal(store.list)
  const { value, failure } = useRefetch(`usage ${by} ${days}`, underWay(), () => told(by, days))
  return (
    <main className="screen usage" aria-label="Usage">
      <h1>Usage</h1>
      <p className="lead">What your sessions have used. Money is what the agents report; otherwise tokens are charged at the list price of their model, if that is known.</p>
      <div className="usagechoices">
        <Choice name="Period" value={String(days)} values={USAGE_DAYS.map((each) => [String(each), `Last ${each} days`])} choose={(each) => go(paths.usage(by, Number(each)))} />
        <Choice name="Group by" value={by} values={USAGE_GROUPS.map((each) => [each, each])} choose={(each) => go(paths.usage(each as UsageGroup, days))} />
      </div>
      {value === null && <p className="quiet">{failure ? <Plain text={failure} /> : 'Looking…'}</p>}
      {value !== null && (value.daily.rows.length === 0
        ? <div className="empty big"><Icon name="chart" /><p>Nothing was used in the last {days} days.</p></div>
        : <Figures daily={value.daily} grouped={value.grouped} by={by} days={days} />)}
    </main>
  )
}

/** Changes when a turn begins or ends. */
function underWay(): number {
  const sessions = [...store.summaries.values()]
  return sessions.length * 10_000 + sessions.filter(({ status }) => status === 'running').length
}

async function told(by: UsageGroup, days: number): Promise<{ daily: UsageList; grouped: UsageList }> {
  const since = new Date().setHours(0, 0, 0, 0) / 1000 - (days - 1) * 86_400
  const [daily, grouped] = await Promise.all([usage(since, 'day'), usage(since, by)])
  return { daily, grouped }
}

function Choice({ name, value, values, choose }: { name: string; value: string; values: [string, string][]; choose: (value: string) => void }) {
  return (
    <label className="field">
      <span>{name}</span>
      <select value={value} onChange={(event) => choose(event.target.value)}>
        {values.map(([each, word]) => <option key={each} value={each}>{word}</option>)}
      </select>
    </label>
  )
}

function Figures({ daily, grouped, by, days }: { daily: UsageList; grouped: UsageList; by: UsageGroup; days: number }) {
  const { total } = daily
  return (
    <>
      <p className="sum"><strong>{costOf(total)}</strong> · {tokensOf(total)} tokens · {plural(total.turns, 'turn')} · {timeOf(total.seconds)}</p>
      <Chart list={daily} days={days} />
      {gapsOf(total).map((sentence) => <p key={sentence} className="quiet">{sentence}</p>)}
      <Table name={`By ${by}`} rows={[...grouped.rows].sort(dearer)} by={by} />
      <Table name="By day" rows={[...daily.rows].reverse()} by="day" />
    </>
  )
}

function dearer(a: UsageRow, b: UsageRow): number {
  const cost = (row: UsageRow) => Math.max(0, ...Object.values(row.spent.cost))
  return cost(b) - cost(a) || (b.spent.tokens?.total ?? 0) - (a.spent.tokens?.total ?? 0)
}

const STEP = 4
const HEIGHT = 40

/** The tables below have every figure: the chart is one picture to a screen reader. */
function Chart({ list, days }: { list: UsageList; days: number }) {
  const measure = measured(list.total)
  const today = new Date()
  const iso = new Date(today.getTime() - today.getTimezoneOffset() * 60_000).toISOString().slice(0, 10)
  const bars = barsOf(list.rows, days, iso, measure.of)
  return (
    <figure className="chart">
      <svg viewBox={`0 0 ${bars.length * STEP} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${measure.name} for each of the last ${days} days`}>
        {bars.map(({ day, share, row }, at) => (
          <rect key={day} x={at * STEP + 0.5} width={STEP - 1} y={HEIGHT - Math.max(share * (HEIGHT - 2), row === null ? 0 : 0.8)} height={Math.max(share * (HEIGHT - 2), row === null ? 0 : 0.8)}>
            <title>{`${day}: ${row === null ? 'nothing' : measure.words(row.spent)}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption>{measure.name} by day, {bars[0]?.day} to {bars.at(-1)?.day}.</figcaption>
    </figure>
  )
}

function Table({ name, rows, by }: { name: string; rows: UsageRow[]; by: UsageGroup | 'day' }) {
  return (
    <div className="figures" tabIndex={0} role="region" aria-label={name}>
      <table>
        <caption>{name}</caption>
        <thead>
          <tr>
            <th scope="col">{by}</th>
            <th scope="col">Cost</th>
            <th scope="col">Tokens</th>
            <th scope="col" className="minor">Turns</th>
            <th scope="col" className="minor">Calls</th>
            <th scope="col" className="minor">Time</th>
            <th scope="col" className="minor" title="for an answer, or for the end of a limit of the model provider">Waited</th>
          </tr>
        </thead>
        <tbody>{rows.map((row) => <tr key={row.name}><th scope="row"><Name row={row} by={by} /></th><Cells spent={row.spent} /></tr>)}</tbody>
      </table>
    </div>
  )
}

function Name({ row, by }: { row: UsageRow; by: UsageGroup | 'day' }) {
  if (by === 'session') return <a href={paths.session(row.name)}><Plain text={row.title ?? row.name} /></a>
  return <Plain text={row.name === '' ? 'unknown' : row.name} />
}

function Cells({ spent }: { spent: Spending }) {
  const { tokens } = spent
  const parts = tokens == null ? '' : `input ${tokens.input}, cached ${tokens.cached}, output ${tokens.output}, thoughts ${tokens.thought}`
  return (
    <>
      <td>{costOf(spent)}</td>
      <td title={parts}>{tokensOf(spent)}</td>
      <td className="minor">{spent.turns}</td>
      <td className="minor">{spent.toolCalls}</td>
      <td className="minor">{timeOf(spent.seconds)}</td>
      <td className="minor">{timeOf(spent.waited + spent.parked)}</td>
    </>
  )
}
