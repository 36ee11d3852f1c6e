/**
 * Why something that a relay sent is not taken, and what it says of the relay. A closed list.
 *   lie    No relay that checks what it passes on sends this: a few in a minute, and it is isolated.
 *   noise  Nothing was gained by it: a great many of them are a flood.
 *   none   Anybody can make an honest relay send this.
 */
export const REFUSED = {
  /** Not JSON, nested too deeply, or no frame of NIP-01. */
  json: 'lie',
  depth: 'lie',
  frame: 'lie',
  /** Not the seven fields as NIP-01 has them. */
  shape: 'lie',
  /** The id is not the hash of the event. */
  id: 'lie',
  signature: 'lie',
  /**
   * Nobody asked for it: of no subscription, of another kind, more than the limit, or for no agent of ours. Notices,
   * answers to nothing and challenges beyond a few too.
   */
  unasked: 'noise',
  /** This relay has sent it before. */
  repeated: 'noise',
  size: 'noise',
  /** More tags than are read. */
  tags: 'none',
  /** Dated too far ahead. */
  future: 'none',
  /** Its author says too much at once. */
  rate: 'none',
  /** Signed by one of our agents: our own word, brought back. */
  echo: 'none',
  /** Words of somebody whom the settings say to ignore. */
  stranger: 'none',
  /** The troupe does not take it: too long, say, or its conversation is archived. */
  troupe: 'none',
} as const;
export type Refused = keyof typeof REFUSED;
export const REFUSALS = Object.keys(REFUSED) as Refused[];
