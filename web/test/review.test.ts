import { expect, test } from 'vitest'
import { reviewPrompt, type Review } from '../src/core/changes/review'
import raw from './reviews.json?raw'

const cases = JSON.parse(raw) as { review: Review; prompt: string }[]

test('a review becomes the same prompt on the page as on the command line', () => {
  expect(cases.length).toBeGreaterThan(60)
  for (const { review, prompt } of cases) expect(reviewPrompt(review)).toBe(prompt)
})
