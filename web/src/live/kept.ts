// What the service worker needs to send an answer. It cannot read the storage in which the page has it.

export function keep(name: string, value: string | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const opening = indexedDB.open('dragoman', 1)
    opening.onupgradeneeded = () => opening.result.createObjectStore('kept')
    opening.onerror = () => reject(opening.error ?? new Error('no storage'))
    opening.onsuccess = () => {
      const writing = opening.result.transaction('kept', 'readwrite')
      const store = writing.objectStore('kept')
      if (value === null) store.delete(name)
      else store.put(value, name)
      writing.onerror = () => reject(writing.error ?? new Error('no storage'))
      writing.oncomplete = () => {
        opening.result.close()
        resolve()
      }
    }
  })
}
