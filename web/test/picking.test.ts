import { expect, test } from 'vitest'
import { askedBriefly, nextOf } from '../src/core/permissions/questions'
import { optionsFor } from '../src/core/picking'
import { offersOf } from '../src/core/session/agent_options'
import { markOf } from '../src/core/text/agent_marks'
import { hydrate } from '../src/core/session/hydrate'

test('a filter finds names before descriptions', () => {
  const options = [{ value: 'a', name: 'Large', note: 'slow' }, { value: 'slow', name: 'Small' }, { value: 'c', name: 'Other' }]
  expect(optionsFor(options, 'SLOW').map(({ value }) => value)).toEqual(['slow', 'a'])
  expect(optionsFor(options, ' ')).toEqual(options)
  expect(optionsFor(options, 'large slow').map(({ value }) => value)).toEqual(['a'])
})

test('what an agent offered is what can be chosen beforehand', () => {
  const modes = { current: 'ask', available: [{ id: 'ask', name: 'Ask' }] }
  const model = { id: 'model', name: 'Model', value: 'x', choices: [{ value: 'x', name: 'X' }] }
  expect(offersOf({ modes, configOptions: [model, { id: 'b', name: 'Fast', value: true }] }).map(({ id, label }) => [id, label])).toEqual([[null, 'Mode'], ['model', 'Model']])
  const asOption = { id: 'm', name: 'Way of working', category: 'mode', value: 'x', choices: [{ value: 'x', name: 'X' }] }
  expect(offersOf({ modes, configOptions: [model, asOption] }).map(({ id, label }) => [id, label])).toEqual([['m', 'Mode'], ['model', 'Model']])
  expect(offersOf({ modes: null })).toEqual([])
})

test('a mark has two letters, whatever the name', () => {
  expect(['claude code', 'goose', 'x', '🙂🙂', 'my_agent', ''].map((name) => markOf(name).initials)).toEqual(['CC', 'GO', 'X', '?', 'MA', '?'])
  expect(markOf('goose')).toEqual(markOf('goose'))
  expect(markOf('goose').hue).not.toBe(markOf('gemini').hue)
})

test('what follows takes the place of a question that has gone', () => {
  expect(nextOf(['a', 'b', 'c'], 'b', 0)).toBe(1)
  expect(nextOf(['a', 'c'], 'b', 1)).toBe(1)
  expect(nextOf(['a'], 'b', 1)).toBe(0)
  expect(nextOf([], 'b', 1)).toBe(0)
})

test('a question is told in one line', () => {
  const state = hydrate({ pending: [{ id: 'a', type: 'permission', operation: 'write', paths: ['/w/a.py', '/w/b.py'], options: [] }] } as never)
  const [asked] = [...state.pending.values()]
  if (asked?.kind !== 'permission') throw new Error('no question')
  expect(askedBriefly(asked, '/w')).toBe('Write a.py and 1 more')
  expect(askedBriefly({ ...asked, argv: ['git', 'tag', 'a b'] }, '/w')).toBe("git tag 'a b'")
  expect(askedBriefly({ ...asked, paths: [], title: 'Deploy' }, '/w')).toBe('Deploy')
})
