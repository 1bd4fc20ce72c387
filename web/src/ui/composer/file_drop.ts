// Files dropped on the page: on a session they are attached, and nowhere may the browser open one in
// the place of the page.

import type { DragEvent as ReactDragEvent } from 'react'
import { attachmentsOf } from './attachments'

/** For what stands for a session on the screen. */
export function fileDrop(session: string) {
  return {
    onDragOver: (event: ReactDragEvent) => { if (hasFiles(event.dataTransfer)) event.preventDefault() },
    onDrop: (event: ReactDragEvent) => {
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
