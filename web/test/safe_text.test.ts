import { expect, test } from 'vitest'
import raw from './questions.json?raw'
import { markHidden, plainOutput, reveal, shellWords, visible, visibleLine } from '../src/core/text/safe_text'

test('what a person decides on reads as on the command line', () => {
  const { texts } = JSON.parse(raw) as { texts: { text: string; line: string; lines: string }[] }
  for (const { text, line, lines } of texts) expect([text, reveal(text), reveal(text, true)]).toEqual([text, line, lines])
})

test('characters that turn or hide text are marked', () => {
  expect(visible('a\u202eb')).toBe('a⟨U+202E⟩b')
  expect(visible('a\u200bb\u2066')).toBe('a⟨U+200B⟩b⟨U+2066⟩')
  expect(visible('\u{e0041}')).toBe('⟨U+E0041⟩')
  expect(visible('bell\x07 esc\x1b')).toBe('bell␇ esc␛')
  expect(visible('c1 \x9b')).toBe('c1 ⟨U+009B⟩')
})

test('emoji that are joined stay whole, joiners elsewhere are marked', () => {
  expect(visible('👩‍💻 ❤️ 1️⃣')).toBe('👩‍💻 ❤️ 1️⃣')
  expect(visible('pass\u200dword')).toBe('pass⟨U+200D⟩word')
})

test('flowing text keeps its lines, a title has one', () => {
  expect(visible('a\r\nb\tc')).toBe('a\nb\tc')
  expect(reveal('a\nb')).toBe('a␊b')
  expect(reveal('a\nb', true)).toBe('a\nb')
  expect(reveal('a\u00a0b')).toBe('a⟨U+00A0⟩b')
})

test('output of a terminal is plain lines', () => {
  expect(plainOutput('\x1b[31mred\x1b[0m\r\n10 %\r20 %\r\n\x1b]0;title\x07x')).toBe('red\n20 %\nx')
  expect(plainOutput('a\r\r\nb\rc\r\n\r\n')).toBe('a\nc\n\n')
  expect(plainOutput(`a${'\r'.repeat(1_000_000)}b`)).toBe('b')
})

test('words that need quotes get them', () => {
  expect(shellWords(['rm', '-rf', 'a b', "it's", ''])).toBe("rm -rf 'a b' 'it'\\''s' ''")
})

test('a carriage return is a character of its line', () => {
  expect(visibleLine('ok\rhidden')).toBe('ok␍hidden')
})

test('a terminal keeps its control sequences, and shows what turns letters around', () => {
  expect(markHidden('\x1b[1mgpj.\u202egnp\r\n')).toBe('\x1b[1mgpj.⟨U+202E⟩gnp\r\n')
})
