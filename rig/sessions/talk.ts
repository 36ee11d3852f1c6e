/** One way to talk with a program that remembers: its process and its session stay open between turns. */
export interface Talk extends AsyncDisposable {
  /** Resolves with the answer as soon as the turn is known to be over. */
  say(words: string): Promise<string>;
}

export interface TalkOptions {
  /** Of the fake API. */
  url: string;
  /** Where all of its files go. */
  dir: string;
}

/** What is the same in every way: differences in time are then of the ways. */
export const TALK = {
  key: 'sk-ant-key-of-rig',
  system: 'You advise a harbour office about its books. Be brief, and name what you are not sure of.',
  maxOutputTokens: 4096,
  models: { 'claude-code': 'sonnet', codex: 'gpt-5.5' },
} as const;
