// What was chosen for the next session, kept while the page is open: one may look elsewhere meanwhile.

import { Signal, useSignal } from '../../live/signal'
import { store } from '../../live/store'
import { go } from '../shell/route'
import { shell } from '../shell/shell'
import { recentFolders } from './recent_folders'

export interface Wish { agent: string; folder: string; options: Record<string, string> }

let chosen: Partial<Wish> = {}
const changed = new Signal()

export function useWish(): Wish {
  useSignal(changed)
  return wished()
}

/** With what was used last where nothing was chosen: sessions of a project mostly follow each other. */
export function wished(): Wish {
  const standard = (store.agents.find((agent) => agent.isDefault) ?? store.agents.find((agent) => agent.state !== 'missing'))?.name ?? ''
  return { agent: chosen.agent ?? standard, folder: chosen.folder ?? recentFolders()[0] ?? '', options: chosen.options ?? {} }
}

/** What was chosen here, without what follows from other sessions. */
export function chosenWish(): Partial<Wish> {
  return chosen
}

interface Change { agent?: string; folder?: string; option?: [string, string] }

export function changeWish({ agent, folder, option }: Change): void {
  if (agent !== undefined && agent !== wished().agent) chosen = { ...chosen, agent, options: {} }
  if (folder !== undefined) chosen = { ...chosen, folder }
  if (option !== undefined) chosen = { ...chosen, options: { ...chosen.options, [option[0]]: option[1] } }
  changed.emit()
}

/** In place of a session's id: the draft and the attachments of the first prompt are kept under it. */
export const BEGINNING = 'start'

/** To the field where a session begins. */
export function beginSession(folder?: string): void {
  if (folder) changeWish({ folder })
  shell.set({ writing: BEGINNING, drawer: false, dialog: null })
  go('#/')
}
