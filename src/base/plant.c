/* Which planted bug is switched on; exists in builds with BS_PLANTED only. */
#include "base/plant.h"

#ifdef BS_PLANTED
enum bs_plant bs_planted = BS_PLANT_NOTHING;
#endif
