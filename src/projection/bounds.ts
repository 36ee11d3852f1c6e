/** How much of a conversation a projection keeps: with these it is some hundred kilobytes at most, however long the log. */
export const MAX_AGENTS = 2_000;
export const MAX_TURNS = 500;
export const MAX_ARROWS = 1_000;
export const MAX_TALK = 1_000;
/** Of those that have ended. */
export const MAX_TASKS = 100;
export const MAX_OPEN_TASKS = 500;
export const MAX_COMPACTIONS = 100;
export const MAX_FORKS = 100;
/** Of one agent, and inputs of one turn. */
export const MAX_PENDING = 100;
/** Of one turn. */
export const MAX_CALLS = 20;
/** Characters of a line. */
export const MAX_SUMMARY = 200;
/** Characters that are kept of what led to a turn. */
export const MAX_TRIGGER = 120;
/** Characters of the arguments of a call that a person has to agree to. */
export const MAX_ASKED = 4_000;
