import { expect, test } from 'vitest'
import { SseParser } from '../src/core/sse'

const STREAM = ': hello\n\nid: 7\ndata: {"a":1}\n\nid: 8\r\nevent: reset\r\ndata: x\r\ndata: y\r\n\r\n'

test('events come out whole wherever the stream is cut', () => {
  for (let cut = 0; cut <= STREAM.length; cut++) {
    const parser = new SseParser()
    const events = [...parser.feed(STREAM.slice(0, cut)), ...parser.feed(STREAM.slice(cut))]
    expect(events).toEqual([
      { id: '7', event: 'message', data: '{"a":1}' },
      { id: '8', event: 'reset', data: 'x\ny' },
    ])
  }
})
