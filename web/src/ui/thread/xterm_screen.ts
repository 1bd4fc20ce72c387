// xterm as a mere screen: nothing typed, no links, no clipboard, no answers to what it is asked.

import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { PALETTE } from '../../core/text/ansi'
import { markHidden } from '../../core/text/safe_text'

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'] as const
const PALETTE_OF_XTERM = Object.fromEntries(PALETTE.map((colour, at) => {
  const name = NAMES[at % 8] ?? 'white'
  return [at < 8 ? name : `bright${name.charAt(0).toUpperCase()}${name.slice(1)}`, colour]
}))

const FEWEST = 2
const MOST = 14

export class XtermScreen {
  private readonly xterm: Terminal
  private readonly fit = new FitAddon()
  private readonly observer: ResizeObserver
  private written = 0
  private rows = FEWEST

  constructor(host: HTMLElement) {
    this.xterm = new Terminal({
      disableStdin: true,
      convertEol: true,
      cursorBlink: false,
      cursorInactiveStyle: 'none',
      scrollback: 5000,
      rows: FEWEST,
      fontSize: 12,
      fontFamily: '"JetBrains Mono Variable", ui-monospace, "Cascadia Mono", "DejaVu Sans Mono", Menlo, monospace',
      theme: { background: '#14181d', foreground: '#d8dee6', cursor: '#14181d', ...PALETTE_OF_XTERM, scrollbarSliderBackground: '#3d465080', scrollbarSliderHoverBackground: '#3d4650', scrollbarSliderActiveBackground: '#545d68' },
      minimumContrastRatio: 4.5,
      linkHandler: { activate: () => undefined, hover: () => undefined, leave: () => undefined },
    })
    this.xterm.loadAddon(this.fit)
    this.xterm.open(host)
    // Nothing is typed here: keys are the page's, and Tab leads on.
    this.xterm.attachCustomKeyEventHandler(() => false)
    if (this.xterm.textarea) this.xterm.textarea.tabIndex = -1
    this.observer = new ResizeObserver(() => this.resize())
    this.observer.observe(host)
    this.resize()
  }

  /** Draw what was printed; `dropped` characters before it are gone. */
  show(output: string, dropped: number): void {
    const from = this.written - dropped
    if (from < 0) this.xterm.reset()
    this.rows = Math.min(MOST, Math.max(FEWEST, output.split('\n', MOST + 1).length))
    this.resize()
    this.xterm.write(markHidden(output.slice(Math.max(0, from))))
    this.written = dropped + output.length
  }

  scroll(lines: number): void {
    this.xterm.scrollLines(lines)
  }

  private resize(): void {
    const columns = this.fit.proposeDimensions()?.cols
    if (columns !== undefined && Number.isFinite(columns)) this.xterm.resize(Math.max(20, columns), this.rows)
  }

  dispose(): void {
    this.observer.disconnect()
    this.xterm.dispose()
  }
}
