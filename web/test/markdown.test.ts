import { Lexer, Tokenizer } from 'marked'
import { expect, test, vi } from 'vitest'
import { MOST_OF_RUN, costOf, partsOf } from '../src/core/text/containers'
import { Blocks, asWritten, isFence, renderBlock } from '../src/core/text/markdown'

const whole = (text: string) => new Blocks().split(text).map(renderBlock).join('')

test('raw HTML is shown as text', () => {
  for (const text of ['<script>alert(1)</script>', 'a <img src=x onerror=alert(1)> b', '<b>x', '<!-- c -->']) {
    expect(whole(text)).not.toMatch(/<(script|img|b|!--)/)
  }
})

test('links say where they lead, and only to places one may go', () => {
  expect(whole('[here](https://evil.example/x)')).toContain('(evil.example)')
  expect(whole('https://a.example/b')).not.toContain('class="target"')
  for (const target of ['javascript:alert(1)', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd']) {
    expect(whole(`[x](${target})`)).not.toContain('href')
  }
  expect(whole('[x](https://a.example/"onmouseover="y)')).not.toMatch(/"onmouseover/)
})

test('images load nothing', () => {
  expect(whole('![cat](https://a.example/cat.png)')).not.toContain('<img')
})

test('a fence cannot carry markup in its language or its code', () => {
  const html = whole('```<img/onerror=x>\n</code><script>\n```')
  expect(html).not.toMatch(/<(img|script)/)
})

test('a growing text has the same blocks as the whole at once', () => {
  const text = '# Title\n\nOne **two**\n\n- a\n- b\n\n  more\n\n```py\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend\n\n1. x\n2. y\n\nlast *one*'
  const growing = new Blocks()
  let blocks: string[] = []
  for (let end = 1; end <= text.length; end++) blocks = growing.split(text.slice(0, end))
  expect(blocks.map(renderBlock).join('')).toBe(whole(text))
})

test('characters that turn text around are marked in code too', () => {
  expect(whole('`a\u202eb`')).toContain('⟨U+202E⟩')
})

test('a paragraph of too many signs to pair is shown as it was written', () => {
  for (const unit of ['_', '*', '_a_', '!', '**a', '[', '`a', '~~a', '<a']) {
    const text = `a${unit.repeat(20_000)}x <b>`
    const blocks = new Blocks().split(text)
    expect(blocks).toHaveLength(1)
    const html = renderBlock(blocks[0] ?? '')
    expect(html.slice(0, 21)).toBe('<p class="unmarked">a')
    expect(html.endsWith('x &#60;b&#62;</p>\n')).toBe(true)
  }
  expect(whole('**bold** '.repeat(400))).toContain('<strong>bold</strong>')
  expect(whole('- **bold** `code`\n'.repeat(2_000))).toContain('<strong>bold</strong>')
})

test('backticks that begin no fence do not let a paragraph be paired without bound', () => {
  const pairings = vi.spyOn(Tokenizer.prototype, 'emStrong')
  for (const start of ['```x`', '   ```` a `b` ']) {
    const text = `${start}${'*a_'.repeat(1_500)}`
    const blocks = new Blocks()
    expect(blocks.split(text)).toEqual([text])
    const asIs = `<p class="unmarked">${text}</p>\n`
    expect(renderBlock(text)).toBe(asIs)
    expect(asWritten(text)).toBe(asIs)
  }
  expect(pairings).not.toHaveBeenCalled()
  pairings.mockRestore()
})

test('a fence is what the parser takes for one', () => {
  const starts = ['```', '```js', '````', '   ```', '~~~', '~~~ a`b~', '```x`', '```` a```` b', '    ```', '``', 'a```']
  for (const text of starts.flatMap((start) => [start, `${start}\n`, `${start}\na\n\`\`\`\n`])) {
    const [first] = new Lexer({ gfm: true }).blockTokens(text)
    const fenced = first?.type === 'code' && first['codeBlockStyle'] !== 'indented'
    expect([text, isFence(text)]).toEqual([text, fenced])
  }
})

test('a text that is too much work has its rest as it was written', () => {
  const drawnOf = (text: string) => {
    const blocks = new Blocks()
    return { all: blocks.split(text).length, drawn: blocks.drawn }
  }
  const paragraph = `${'*a_'.repeat(900)}\n\n`
  expect(drawnOf(paragraph.repeat(500))).toEqual({ all: 500, drawn: 4 })
  const code = `\`\`\`csharp\n${'a\n'.repeat(4_900)}\`\`\`\n\n`
  expect(drawnOf(code.repeat(100))).toEqual({ all: 100, drawn: 4 })
  expect(drawnOf('Some **bold** words and `code`.\n\n'.repeat(5_000))).toEqual({ all: 5_000, drawn: 5_000 })
  const table = `| a | b |\n|---|---|\n${`| \`code\` | ${'words '.repeat(20)}|\n`.repeat(900)}`
  expect(drawnOf(table)).toEqual({ all: 1, drawn: 1 })
  const growing = new Blocks()
  for (let times = 1; times < 12; times++) growing.split(paragraph.repeat(times))
  expect(growing.drawn).toBe(4)
  expect(asWritten('a **b** <b>')).toBe('<p class="unmarked">a **b** &#60;b&#62;</p>\n')
  expect(asWritten('```java\nreturn <b>;\n```')).toContain('<pre><code>return &#60;b&#62;;')
})

/** What the parser was given to do, in the measure of `costOf`: the most at once, and in all. */
function parsing(work: () => void): { most: number; all: number } {
  const parser = vi.spyOn(Lexer.prototype, 'blockTokens')
  work()
  // What it calls itself for is a part of what it was called for.
  const costs = parser.mock.calls.filter(([, tokens]) => tokens === undefined).map(([text]) => costOf(text))
  parser.mockRestore()
  return { most: Math.max(0, ...costs), all: costs.reduce((sum, cost) => sum + cost, 0) }
}

const CONTAINERS = {
  'lines of an item': `- a\n${'  b\n'.repeat(30_000)}`,
  'long lines of an item': `- a\n${`  ${'word '.repeat(40)}\n`.repeat(1_000)}`,
  'lazy lines of lists in quotes': '> - a\nb\n'.repeat(20_000),
  'lazy lines of quotes': '> a\nb\n'.repeat(20_000),
  'quotes in quotes': '> > a\n> b\n'.repeat(20_000),
  'tasks': '- [ ] a\n'.repeat(20_000),
  'numbers': Array.from({ length: 20_000 }, (_, at) => `${at + 1}. a`).join('\n'),
  'lists in lists': Array.from({ length: 400 }, (_, at) => `${'  '.repeat(at)}- a`).join('\n'),
}

test('a list or a quote that is too much for the parser is shown as it was written', () => {
  for (const [name, run] of Object.entries(CONTAINERS)) {
    const text = `# Before\n\nwords\n\n${run}\n\n**after**\n`
    const blocks = new Blocks()
    let all: string[] = []
    const { most } = parsing(() => { all = blocks.split(text) })
    expect([name, most <= MOST_OF_RUN]).toEqual([name, true])
    expect([name, all.length, blocks.drawn]).toEqual([name, 4, 4])
    expect(renderBlock(all[2] ?? '').slice(0, 20)).toBe('<p class="unmarked">')
    expect(renderBlock(all[3] ?? '')).toContain('<strong>after</strong>')
  }
})

test('what is deeper than the parser can go is shown as it was written', () => {
  for (const text of [`${'* '.repeat(5_000)}a`, `${'> '.repeat(5_000)}a`, `${'- > '.repeat(5_000)}a`, `${'* '.repeat(300)}a`]) {
    expect(whole(text).slice(0, 20)).toBe('<p class="unmarked">')
  }
})

test('many lists and quotes that are each not too much have a bound together', () => {
  const run = `- a\n${'  b\n'.repeat(3_000)}\nwords\n\n`
  const blocks = new Blocks()
  const { most, all } = parsing(() => blocks.split(run.repeat(100)))
  expect(most).toBeLessThanOrEqual(MOST_OF_RUN)
  expect(all).toBeLessThanOrEqual(2 * MOST_OF_RUN)
  expect(blocks.drawn).toBeGreaterThan(2)
  expect(blocks.drawn).toBeLessThan(20)
})

test('a list is not parsed again for what is said behind it', () => {
  const list = '- **bold** `code` and words\n'.repeat(1_500)
  const blocks = new Blocks()
  const { all } = parsing(() => {
    for (let words = 1; words <= 50; words++) blocks.split(`${list}\n\n${'word '.repeat(words)}`)
  })
  expect(all).toBeLessThanOrEqual(2 * MOST_OF_RUN)
})

test('a long text has the same blocks whether or not its lists are parsed for themselves', () => {
  const section = [
    '## Title', 'Words\n- an item right behind them\n- another\nlazy words\n\n  more of it\n\nbehind it',
    '1. one\n2. two\n   ```py\n   - no item\n\n   x\n   ```\n3. three', '```md\n- not a list\n\n> nor a quote\n```',
    '> a quote\nlazy\n\n> another\n\n* * *', '~~~\n```\n- a\n~~~', 'in\n1999. it was a year', '- a\n# Heading', '- b\n```\n> c\n```',
    '| a | b |\n|---|---|\n| 1 | 2 |', '    - code\n    > code', '+ x\n\n+ y\n\n      - code\n\nend',
  ].join('\n\n')
  const long = `${section}\n\n`.repeat(40)
  expect(partsOf(long).length).toBeGreaterThan(200)
  const parsed = new Lexer({ gfm: true }).blockTokens(long).filter(({ type }) => type !== 'space')
  expect(new Blocks().split(long)).toEqual(parsed.map(({ raw }) => raw))
})

test('code of long lines has no colours', () => {
  const fence = (code: string) => whole(`\`\`\`java\n${code}\n\`\`\``)
  expect(fence('return 1;')).toContain('hljs-')
  expect(fence(`return 1; // ${'a'.repeat(1_000)}`)).not.toContain('hljs-')
  expect(fence('return 1;\n'.repeat(3_000))).not.toContain('hljs-')
  expect(fence('_'.repeat(30_000))).toContain('<pre>')
})

test('columns keep their alignment, and footnotes are marks', () => {
  const table = renderBlock('| a | b |\n|---|---:|\n| 1 | 2 |')
  expect(table).toContain('<td align="right">2</td>')
  expect(renderBlock('So it is[^1].')).toBe('<p>So it is<sup class="footnote">1</sup>.</p>\n')
  expect(renderBlock('[^b<i>]')).not.toContain('<i>')
  expect(renderBlock('[^1]: Where it *is* said.')).toBe('<p><sup class="footnote">1</sup> Where it <em>is</em> said.</p>\n')
})
