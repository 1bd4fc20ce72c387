// Asks the server again whenever something changed, at a limited rate; an answer that a later one has
// overtaken does not count.

import { useEffect, useRef, useState } from 'react'

const WAIT_MS = 400

export interface Refetched<T> { value: T | null; failure: string; again: () => void }

/** `about` names what is asked for: while it is the same, the last answer stays until the next. */
export function useRefetch<T>(about: string, version: number, ask: () => Promise<T>): Refetched<T> {
  const [told, setTold] = useState<{ about: string; value: T } | null>(null)
  const [failure, setFailure] = useState('')
  const course = useRef({ asked: 0, answered: 0, about: '', timer: undefined as ReturnType<typeof setTimeout> | undefined })
  const look = () => {
    const question = ++course.current.asked
    const overtaken = () => question < course.current.answered || course.current.about !== about
    ask().then(
      (value) => {
        if (overtaken()) return
        course.current.answered = question
        setTold({ about, value })
        setFailure('')
      },
      (error: Error) => { if (!overtaken()) setFailure(error.message) },
    )
  }
  const latest = useRef(look)
  latest.current = look
  useEffect(() => {
    const { current } = course
    const other = current.about !== about
    current.about = about
    if (other) clearTimeout(current.timer)
    else if (current.timer !== undefined) return
    current.timer = setTimeout(() => {
      current.timer = undefined
      latest.current()
    }, other ? 0 : WAIT_MS)
  }, [about, version])
  useEffect(() => () => clearTimeout(course.current.timer), [])
  return { value: told?.about === about ? told.value : null, failure, again: () => latest.current() }
}
