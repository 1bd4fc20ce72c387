import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { reviewPrompt, type Review } from '../src/core/review'

const cases = JSON.parse(readFileSync(new URL('./reviews.json', import.meta.url), 'utf8')) as { review: Review; prompt: string }[]

test('a review becomes the same prompt on the page as on the command line', () => {
  expect(cases.length).toBeGreaterThan(60)
  for (const { review, prompt } of cases) expect(reviewPrompt(review)).toBe(prompt)
})
