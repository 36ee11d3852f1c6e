/** The agent's reply, slow enough that its server can be killed in the middle. */
export const REPLY = 'Once upon a time there was a company of agents that never forgot a word.';

/** A company of one agent that tells the story. */
export const STORY = {
  doors: ['a2a', 'ag-ui', 'ai-sdk', 'mcp', 'openai'],
  agents: [
    {
      id: 'bo',
      provider: 'scripted',
      model: 'test',
      script: { rules: [{ reply: REPLY, chunk: 2, chunkDelayMs: 40 }] },
    },
  ],
};
