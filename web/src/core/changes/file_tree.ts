// Changed files as a tree: folders that hold only one other are one row.

export interface TreeRow {
  /** Its path, as it is unique. */
  key: string
  name: string
  depth: number
  /** The place of the file in the list; null for a folder. */
  file: number | null
  /** Of a folder: how many files it has, in it and below. */
  count: number
}

interface Folder { folders: Map<string, Folder>; files: [string, number][]; count: number }

const empty = (): Folder => ({ folders: new Map(), files: [], count: 0 })

/** Rows in order; what is in a `closed` folder is left out. */
export function treeRows(paths: readonly string[], closed: ReadonlySet<string> = new Set(), only: (at: number) => boolean = () => true): TreeRow[] {
  const root = empty()
  paths.forEach((path, at) => {
    if (!only(at)) return
    const parts = path.split('/')
    let folder = root
    for (const part of parts.slice(0, -1)) {
      let next = folder.folders.get(part)
      if (next === undefined) folder.folders.set(part, (next = empty()))
      next.count++
      folder = next
    }
    folder.files.push([parts.at(-1) ?? path, at])
  })
  const rows: TreeRow[] = []
  list(root, '', 0, closed, rows)
  return rows
}

function list(folder: Folder, above: string, depth: number, closed: ReadonlySet<string>, rows: TreeRow[]): void {
  for (const [first, child] of sorted(folder.folders)) {
    let [name, inner] = [first, child]
    for (let only = onlyFolder(inner); only !== null; only = onlyFolder(inner)) {
      name += `/${only[0]}`
      inner = only[1]
    }
    const key = `${above}${name}/`
    rows.push({ key, name: name || '/', depth, file: null, count: inner.count })
    if (!closed.has(key)) list(inner, key, depth + 1, closed, rows)
  }
  for (const [name, file] of folder.files.sort(([a], [b]) => order(a, b))) rows.push({ key: above + name, name, depth, file, count: 1 })
}

function onlyFolder({ folders, files }: Folder): [string, Folder] | null {
  if (files.length > 0 || folders.size !== 1) return null
  for (const only of folders) return only
  return null
}

function sorted(folders: Map<string, Folder>): [string, Folder][] {
  return [...folders].sort(([a], [b]) => order(a, b))
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The files in the order in which the tree shows them. */
export function treeOrder(paths: readonly string[]): number[] {
  return treeRows(paths).flatMap(({ file }) => file ?? [])
}
