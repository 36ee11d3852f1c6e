/** One way to talk with a program that remembers. Its process and session stay open between turns. */
export interface Talk extends AsyncDisposable {
  /** Resolves with the answer as soon as the turn is over. */
  say(words: string): Promise<string>;
}

export interface TalkOptions {
  /** URL of the fake API. */
  url: string;
  /** Directory for all of its files. */
  dir: string;
}

/** Settings common to all ways, so that time differences are due to the way alone. */
export const TALK = {
  key: 'sk-ant-key-of-rig',
  system: 'You advise a harbour office about its books. Be brief, and name what you are not sure of.',
  maxOutputTokens: 4096,
  models: { 'claude-code': 'sonnet', codex: 'gpt-5.5' },
} as const;
