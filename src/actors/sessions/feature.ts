import type { Feature } from '../feature.ts';
import { adoptSession, sessionNamedIn } from './adopt-session.ts';
import { answerSession, askSession, hearSession, loseSession } from './ask-session.ts';
import { noteBegun, withBegun } from './begun-answer.ts';
import { leaveSession, sessionPatch } from './settle-session.ts';

export const sessions: Feature = {
  open: () => ({
    sessions: {
      namedIn: sessionNamedIn,
      adopt: adoptSession,
      ask: askSession,
      withBegun,
      hear(run, event) {
        if (event.type === 'begun') noteBegun(run, event.mark);
        else hearSession(run, event);
      },
      answered: answerSession,
      lose: loseSession,
      leave: leaveSession,
      patch: sessionPatch,
    },
  }),
};
