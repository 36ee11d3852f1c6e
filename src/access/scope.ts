import * as z from 'zod';

/**
 * What a caller may do. None of them holds another: who may write and not read is given `write` alone.
 *  - `read`: look at conversations, and follow them.
 *  - `write`: say something, answer, approve, call off; with `operate` import.
 *  - `operate`: all other commands, deleting, and words of agents and of the system.
 *  - `admin`: keys, webhooks, metrics.
 */
export const SCOPES = ['read', 'write', 'operate', 'admin'] as const;
export const Scope = z.enum(SCOPES);
export type Scope = z.infer<typeof Scope>;
