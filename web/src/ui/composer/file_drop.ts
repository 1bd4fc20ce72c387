// Files dropped on the page: a session attaches them, and the browser never opens one instead of the
// page.

import type { DragEvent as ReactDragEvent } from 'react'
import { attachmentsOf } from './attachments'

/** Handlers for an element that represents a session. */
export function fileDrop(session: string) {
  return {
    onDragOver: (event: ReactDragEvent<HTMLElement>) => {
      if (!hasFiles(event.dataTransfer)) return
      event.preventDefault()
      event.currentTarget.dataset.drop = ''
    },
    onDragLeave: (event: ReactDragEvent<HTMLElement>) => {
      const next = event.relatedTarget
      if (!(next instanceof Node && event.currentTarget.contains(next))) delete event.currentTarget.dataset.drop
    },
    onDrop: (event: ReactDragEvent<HTMLElement>) => {
      delete event.currentTarget.dataset.drop
      if (!hasFiles(event.dataTransfer)) return
      event.preventDefault()
      attachmentsOf(session).add(event.dataTransfer.files)
    },
  }
}

export function refuseStrayDrops(): void {
  const refuse = (event: DragEvent) => {
    if (event.defaultPrevented || event.dataTransfer === null || !hasFiles(event.dataTransfer)) return
    event.preventDefault()
    event.dataTransfer.dropEffect = 'none'
  }
  window.addEventListener('dragover', refuse)
  window.addEventListener('drop', refuse)
}

function hasFiles(data: DataTransfer): boolean {
  return data.types.includes('Files')
}
