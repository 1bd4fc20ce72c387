import { Lexer, Tokenizer } from 'marked'
import { expect, test, vi } from 'vitest'
import { Blocks, asWritten, isFence, renderBlock } from '../src/core/markdown'

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

test('code of long lines has no colours', () => {
  const fence = (code: string) => whole(`\`\`\`java\n${code}\n\`\`\``)
  expect(fence('return 1;')).toContain('hljs-')
  expect(fence(`return 1; // ${'a'.repeat(1_000)}`)).not.toContain('hljs-')
  expect(fence('return 1;\n'.repeat(3_000))).not.toContain('hljs-')
  expect(fence('_'.repeat(30_000))).toContain('<pre>')
})
