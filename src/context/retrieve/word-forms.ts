/** Irregular English forms, so that "who bought it?" finds "I'll buy it". Each line begins with the base form. */
const FORMS = `
become became|begin began begun|bend bent|bite bit bitten|blow blew blown|break broke broken|bring brought|build built
burn burnt|buy bought|catch caught|choose chose chosen|come came|deal dealt|dig dug|do did done does|draw drew drawn
dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt|fight fought
find found|fly flew flown|forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone goes|grow grew grown|hang hung|hear heard|hide hid hidden|hold held|keep kept
know knew known|lay laid|lead led|learn learnt|leave left|lend lent|lose lost|make made|mean meant|meet met
pay paid|prove proven|ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
sink sank sunk|sit sat|sleep slept|slide slid|speak spoke spoken|spend spent|spin spun|stand stood|steal stole stolen
stick stuck|strike struck|swear swore sworn|sweep swept|swim swam swum|swing swung|take took taken|teach taught
tear tore torn|tell told|think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
win won|withdraw withdrew withdrawn|write wrote written
child children|foot feet|half halves|knife knives|leaf leaves|life lives|man men|mouse mice|shelf shelves|tooth teeth
wife wives|wolf wolves|woman women`;

export const BASE_FORMS: ReadonlyMap<string, string> = new Map(
  FORMS.trim()
    .split(/[|\n]/)
    .flatMap((line) => {
      const [base = '', ...forms] = line.split(' ');
      return forms.map((form) => [form, base] as const);
    }),
);
