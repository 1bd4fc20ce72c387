// What a new session may use at most, and what happens then. The server says what is wrong with it.

import type { OnLimit } from '../../core/generated/facts'
import type { LimitWish, NewSession } from '../../live/api'

export interface TypedLimits { cost: string; time: string; toolCalls: string; then: 'stop' | 'ask' | 'warn'; onLimit: OnLimit | '' }

export const NO_LIMITS: TypedLimits = { cost: '', time: '', toolCalls: '', then: 'ask', onLimit: '' }

/** The part of a new session that says so: nothing if nothing was typed. */
export function wishedLimits({ cost, time, toolCalls, then, onLimit }: TypedLimits): Pick<NewSession, 'limits' | 'onLimit'> {
  const limit: LimitWish = {
    ...(cost.trim() && { cost: Number(cost) }),
    ...(time.trim() && { time: time.trim() }),
    ...(toolCalls.trim() && { toolCalls: Number(toolCalls) }),
  }
  return { ...(Object.keys(limit).length > 0 && { limits: [{ ...limit, then }] }), ...(onLimit && { onLimit }) }
}

export function LimitFields({ value, onChange }: { value: TypedLimits; onChange: (value: TypedLimits) => void }) {
  return (
    <fieldset className="field limits">
      <legend className="label">Limits of the session</legend>
      <div className="limit-row">
        <label className="field"><span className="label">Cost, USD</span>
          <input type="number" min="0" step="any" value={value.cost} onChange={(e) => onChange({ ...value, cost: e.target.value })} placeholder="none" />
        </label>
        <label className="field"><span className="label">Time</span>
          <input value={value.time} onChange={(e) => onChange({ ...value, time: e.target.value })} placeholder="20m" spellCheck={false} />
        </label>
        <label className="field"><span className="label">Tool calls</span>
          <input type="number" min="1" step="1" value={value.toolCalls} onChange={(e) => onChange({ ...value, toolCalls: e.target.value })} placeholder="none" />
        </label>
      </div>
      <label className="field"><span className="label">At a limit</span>
        <select value={value.then} onChange={(e) => onChange({ ...value, then: e.target.value as TypedLimits['then'] })}>
          <option value="ask">Hold the turn and ask</option>
          <option value="stop">Stop the turn</option>
          <option value="warn">Only warn</option>
        </select>
      </label>
      <label className="field"><span className="label">If the model provider refuses</span>
        <select value={value.onLimit} onChange={(e) => onChange({ ...value, onLimit: e.target.value as TypedLimits['onLimit'] })}>
          <option value="">As in the settings</option>
          <option value="park">Wait, then send the prompt again</option>
          <option value="ask">Wait until I decide</option>
          <option value="fail">Fail the turn</option>
        </select>
      </label>
    </fieldset>
  )
}
