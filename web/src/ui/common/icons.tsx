// Icons. Each has a word next to it or a label, so they are hidden from screen readers.

const PATHS = {
  plus: 'M8 3v10M3 8h10',
  search: 'M7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM10 10l3.500 3.500',
  inbox: 'M2.500 9.500 4 3.500h8l1.500 6v3h-11zM2.500 9.500h3l1 1.500h3l1-1.500h3',
  check: 'M3 8.500 6.500 12 13 4.500',
  cross: 'M4 4l8 8M12 4l-8 8',
  alert: 'M8 2.500 14 13H2zM8 6.500v3M8 11.200v.3',
  info: 'M8 2.500a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM8 7.500v3.500M8 5v.3',
  chevron: 'M6 4l4 4-4 4',
  down: 'M8 3v10M4 9l4 4 4-4',
  up: 'M8 13V3M4 7l4-4 4 4',
  stop: 'M4.500 4.500h7v7h-7z',
  send: 'M8 13V3M4 7l4-4 4 4',
  clip: 'M12.500 7.500 8 12a3 3 0 0 1-4.300-4.200l5-5a2 2 0 0 1 2.900 2.800l-4.800 4.800a1 1 0 0 1-1.400-1.400L9.500 5',
  copy: 'M6 6h7v7H6zM10 6V3H3v7h3',
  link: 'M7 9a2.500 2.500 0 0 0 3.500 0l2-2A2.500 2.500 0 0 0 9 3.500l-.7.700M9 7a2.500 2.500 0 0 0-3.500 0l-2 2A2.500 2.500 0 0 0 7 12.500l.7-.700',
  read: 'M4 2.500h5.500L12 5v8.500H4zM6 7h4M6 9.500h4',
  edit: 'M3 13l.7-3L11 2.700l2.300 2.300L6 12.300zM9.500 4.200l2.300 2.300',
  trash: 'M3.500 4.500h9M6 4.500V3h4v1.500M4.500 4.500 5 13h6l.5-8.500',
  move: 'M2.500 5h4l1.500 1.500h5.500V12h-11zM6 9.500h4M8.500 8l1.500 1.500L8.500 11',
  find: 'M7 3a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM10 10l3.500 3.500',
  run: 'M2.500 3.500h11v9h-11zM4.500 6l2 2-2 2M8 10.500h3',
  think: 'M8 2.500a4 4 0 0 1 2 7.400V12H6V9.900a4 4 0 0 1 2-7.400zM6.500 13.800h3',
  globe: 'M8 2.500a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM2.500 8h11M8 2.500c-3 3-3 8 0 11M8 2.500c3 3 3 8 0 11',
  tool: 'M10.500 2.700a3 3 0 0 0-2.700 4.200L3 11.700 4.300 13l4.800-4.800a3 3 0 0 0 4-3.700L11.400 6 10 4.600l1.600-1.700z',
  switch: 'M3 5.500h9M9.500 3 12 5.500 9.500 8M13 10.500H4M6.500 8 4 10.500 6.500 13',
  fork: 'M5 5.500v5M5 8c0-1.500 6 0 6-2.500M5 2.500A1.500 1.500 0 1 1 5 5.500 1.500 1.500 0 0 1 5 2.500zM11 2.500A1.500 1.500 0 1 1 11 5.500 1.500 1.500 0 0 1 11 2.500zM5 10.500A1.500 1.500 0 1 1 5 13.500 1.500 1.500 0 0 1 5 10.500z',
  archive: 'M2.500 3h11v3h-11zM3.500 6v7h9V6M6.500 8.500h3',
  pane: 'M2.500 3h11v10h-11zM9.500 3v10',
  menu: 'M2.500 4.500h11M2.500 8h11M2.500 11.500h11',
  sun: 'M8 5.500a2.500 2.500 0 1 1 0 5 2.500 2.500 0 0 1 0-5zM8 1.800v1.500M8 12.700v1.500M1.800 8h1.500M12.700 8h1.500M3.600 3.600l1 1M11.400 11.400l1 1M3.600 12.400l1-1M11.400 4.600l1-1',
  moon: 'M12.500 9.500A5 5 0 0 1 6.500 3.500a5 5 0 1 0 6 6z',
  half: 'M8 2.500a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM8 2.500v11M8 5h3.500M8 8h5M8 11h3.500',
  grid: 'M2.500 2.500h4.500v4.500H2.500zM9 2.500h4.500v4.500H9zM2.500 9h4.500v4.500H2.500zM9 9h4.500v4.500H9z',
  shield: 'M8 2 13 4v4c0 3-2.200 5-5 6-2.800-1-5-3-5-6V4zM5.800 8l1.600 1.600 3-3.200',
  bot: 'M3.500 6h9v6.500h-9zM8 6V3M6 8.700v.8M10 8.700v.8M1.800 8.500v2M14.200 8.500v2',
  play: 'M5 3.500 12 8l-7 4.500z',
  pause: 'M5.500 3.500v9M10.500 3.500v9',
  clock: 'M8 2.500a5.500 5.500 0 1 1 0 11 5.500 5.500 0 0 1 0-11zM8 5v3.200l2 1.300',
  dots: 'M3.500 8h.01M8 8h.01M12.500 8h.01',
  file: 'M4 2.500h5.500L12 5v8.500H4zM9.500 2.500V5H12',
  folder: 'M2.500 4h4l1.500 1.500h5.500V12.500h-11z',
  keyboard: 'M1.800 4.500h12.400v7H1.800zM4.500 7h.01M7 7h.01M9.500 7h.01M12 7h.01M5 9.500h6',
  chart: 'M2.500 13.500h11M4 11.500v-3M7 11.500v-7M10 11.500v-5M13 11.500v-8',
  undo: 'M6 4 3 7l3 3M3 7h6.500a3 3 0 0 1 0 6H7',
} as const

export type IconName = keyof typeof PATHS

export function Icon({ name, className = '' }: { name: IconName; className?: string }) {
  return (
    <svg className={`icon ${className}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  )
}

export function Spinner() {
  return (
    <svg className="icon spinner" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d="M8 2.500A5.500 5.500 0 1 1 2.500 8" />
    </svg>
  )
}

/** What has not begun, or was begun and is not finished. */
export function Ring({ begun = false }: { begun?: boolean }) {
  return (
    <svg className="icon ring" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d="M8 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8z" />
      {begun && <path className="filled" d="M8 4a4 4 0 0 0 0 8z" />}
    </svg>
  )
}
