// What an agent asks while it signs in or opens a session: the session cannot show it yet.

import { useEffect, useState } from 'react'
import type { Values } from '../../core/form'
import { agents as api, type AgentQuestion } from '../../live/api'
import { QuestionForm } from './elicitation_form'

const LOOK_MS = 700

/** Polls while something waits for the agent; else it looks once, and polls only while there are questions. */
export function AgentQuestions({ agent, waiting = true }: { agent: string; waiting?: boolean }) {
  const [questions, setQuestions] = useState<AgentQuestion[]>([])
  const [filled] = useState(() => new Map<string, Values>())
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    let closed = false
    const look = async () => {
      const found = await api.questions(agent).then((told) => told.questions, () => null)
      if (closed) return
      if (found !== null) setQuestions(found)
      if (waiting || found?.length) timer = setTimeout(() => void look(), LOOK_MS)
    }
    void look()
    return () => {
      closed = true
      clearTimeout(timer)
    }
  }, [agent, waiting])
  return questions.map((asked) => (
    <QuestionForm key={asked.id} pending={asked} filled={filled} past={false} ready send={(action, content) => api.answer(agent, asked.id, action, content)} />
  ))
}
