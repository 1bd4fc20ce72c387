import { expect, test } from 'vitest'
import { money } from '../src/core/text/format'

test('no amount that an agent told stops the page', () => {
  for (const amount of [null, 1.7e308, -1.7e308, Infinity, NaN]) {
    expect(money(amount, 'USD')).toBe('? USD')
    expect(money(amount, 'credits')).toBe('? credits')
  }
  expect(money(1.5, 'USD')).toContain('1.50')
  expect(money(1.5, 'credits')).toBe('1.5 credits')
})
